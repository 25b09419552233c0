/* The time in seconds, by a clock that is never set back. */
#ifndef LE_BASE_CLOCK_H
#define LE_BASE_CLOCK_H

double le_now(void);
/* Seconds of processor time that all threads of this process have taken. */
double le_processor_time(void);
/* Does nothing for so long. */
void le_wait(double seconds);

#endif
