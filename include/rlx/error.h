#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "rlx/export.h"

namespace rlx {
inline namespace v0 {

/// Stable codes, one for each error class; the values never change.
enum class ErrorCode : int {
  kInvalidArgument = 1,
  kShape = 2,
  kUnsupported = 3,
  kFormat = 4,
  kDevice = 5,
  kIndex = 6,
  kInternal = 7,
  kFile = 8,
};

/// Base of everything RLX throws. The message says what was found, what was expected and whose it
/// is.
class RLX_EXPORT Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  const char* what() const noexcept override { return message_.c_str(); }
  ErrorCode code() const noexcept { return code_; }

  /// Name of the node that is at fault, empty if none is known.
  const std::string& node() const noexcept { return node_; }
  /// Name of the operator that is at fault, empty if none is known.
  const std::string& op() const noexcept { return op_; }
  /// Path of the file that is at fault, empty if none is known.
  const std::string& file() const noexcept { return file_; }

  /// Adds the node (and its operator) as context, once: the innermost caller knows best.
  void at(std::string_view node, std::string_view op = {});
  /// Adds the file as context, once.
  void in_file(std::string_view path);

 private:
  ErrorCode code_;
  std::string message_;
  std::string node_, op_, file_;
};

/// A wrong name, dtype, attribute or option.
class RLX_EXPORT InvalidArgument : public Error {
 public:
  explicit InvalidArgument(std::string message)
      : Error(ErrorCode::kInvalidArgument, std::move(message)) {}
};

/// Shapes that do not fit an operator, each other, or what was declared.
class RLX_EXPORT ShapeError : public Error {
 public:
  explicit ShapeError(std::string message) : Error(ErrorCode::kShape, std::move(message)) {}
};

/// Something valid that RLX, or the chosen device, cannot do.
class RLX_EXPORT Unsupported : public Error {
 public:
  explicit Unsupported(std::string message) : Error(ErrorCode::kUnsupported, std::move(message)) {}
};

/// Bytes that are not what their format demands.
class RLX_EXPORT FormatError : public Error {
 public:
  /// `offset` is the position in the file, in bytes, at which reading failed.
  FormatError(std::string message, std::uint64_t offset);
  std::uint64_t offset() const noexcept { return offset_; }

 private:
  std::uint64_t offset_;
};

/// A device that is missing, refuses work or was lost.
class RLX_EXPORT DeviceError : public Error {
 public:
  explicit DeviceError(std::string message) : Error(ErrorCode::kDevice, std::move(message)) {}
};

/// A value in the data of a run that is out of range: an index, a label, an integer divisor of
/// zero.
class RLX_EXPORT IndexError : public Error {
 public:
  explicit IndexError(std::string message) : Error(ErrorCode::kIndex, std::move(message)) {}
};

/// A file that the operating system does not let us open, read, map or write.
class RLX_EXPORT FileError : public Error {
 public:
  explicit FileError(std::string message) : Error(ErrorCode::kFile, std::move(message)) {}
};

/// A defect of RLX itself.
class RLX_EXPORT InternalError : public Error {
 public:
  explicit InternalError(std::string message) : Error(ErrorCode::kInternal, std::move(message)) {}
};

}  // namespace v0
}  // namespace rlx
