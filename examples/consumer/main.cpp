// Makes a tensor, looks at it another way, and shows what an error says.

#include <cstdio>

#include "rlx/error.h"
#include "rlx/tensor.h"

int main() {
  const rlx::Tensor rows({2, 3}, {1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F});
  const rlx::Tensor columns = rows.reshaped({3, 2});
  float total = 0;
  for (float value : columns.values<float>()) total += value;
  std::printf("%zu elements, sum %g\n", columns.size(), total);

  try {
    rows.reshaped({4, 2});
  } catch (const rlx::Error& error) {
    std::printf("as expected: %s\n", error.what());
    return total == 21 ? 0 : 1;
  }
  std::puts("a reshape to another number of elements was accepted");
  return 1;
}
