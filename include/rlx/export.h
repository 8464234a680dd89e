#pragma once

/// Marks what a shared librlx exports; everything else is hidden.
#define RLX_EXPORT __attribute__((visibility("default")))
