/* Products of columns with columns, compiled once for all models: see models/products.h. */
#include "models/shared.h"

#define VECTOR_BODY "models/products_body.h"
#define VECTOR_SINGLE_BODY "models/products_body.h"
#include "base/variants.h"
