/* The time in seconds, by a clock that is never set back. */
#pragma once

double le_now(void);
/* Seconds of processor time that all threads of this process have taken. */
double le_processor_time(void);
/* Does nothing for so long. */
void le_wait(double seconds);
