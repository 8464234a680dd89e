#include "base/os_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace rlx {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLarge = std::size_t{256} << 10;  // a heap would keep such pieces for itself

std::size_t rounded_up(std::size_t bytes, std::size_t to) {
  if (bytes > SIZE_MAX - to) throw std::bad_alloc();
  return (bytes + to - 1) / to * to;
}

std::shared_ptr<std::byte> allocate_small(std::size_t bytes) {
  const std::size_t size = rounded_up(std::max<std::size_t>(bytes, 1), kAlignment);
  auto* p = static_cast<std::byte*>(std::aligned_alloc(kAlignment, size));
  if (p == nullptr) throw std::bad_alloc();
  std::memset(p, 0, size);
  return {p, [](std::byte* q) { std::free(q); }};
}

// Maps more than asked for where the start has to be aligned to a large page.
std::shared_ptr<std::byte> map_pages(std::size_t bytes) {
  const bool huge = bytes >= kHugePage;
  const std::size_t size = rounded_up(bytes, 4096) + (huge ? kHugePage : 0);
  void* base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
  auto* p = static_cast<std::byte*>(base);
  if (huge) {
    p = reinterpret_cast<std::byte*>(rounded_up(reinterpret_cast<std::uintptr_t>(p), kHugePage));
    madvise(p, bytes, MADV_HUGEPAGE);  // a hint: failing is harmless
  }
  return {p, [base, size](std::byte*) { munmap(base, size); }};
}

}  // namespace

std::shared_ptr<std::byte> allocate_zeroed(std::size_t bytes) {
  return bytes < kLarge ? allocate_small(bytes) : map_pages(bytes);
}

}  // namespace rlx
