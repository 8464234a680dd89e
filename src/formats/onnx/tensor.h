#pragma once

#include <map>
#include <memory>
#include <string>

#include "formats/onnx/proto.h"
#include "rlx/tensor.h"

namespace rlx {
class MappedFile;
}

namespace rlx::onnx {

/// The dtype behind a number of TensorProto.DataType. Throws `FormatError` at `offset` for one that
/// does not exist.
DType dtype_from(std::int32_t data_type, std::uint64_t offset);

/// Turns TensorProtos of one file into tensors. Weights stay where they are if `keep_mapped`: the
/// tensor is a view that keeps the mapping alive, where the bytes are aligned; else they are copied
/// and the pages of the mapping are dropped.
class TensorLoader {
 public:
  /// `owner` keeps `file` alive and is the mapping itself if there is one. External data is looked
  /// for in `folder`; an empty one forbids it.
  TensorLoader(Bytes file, std::shared_ptr<const void> owner, const MappedFile* mapping,
               std::string folder, bool keep_mapped);

  /// Throws `FormatError` for wrong or missing data, `InvalidArgument` for external data outside
  /// the folder, `FileError` for a missing file, `Unsupported` for what RLX cannot hold.
  Tensor load(const TensorProto& proto);

 private:
  Tensor from_raw(DType dtype, const TensorProto& proto, Bytes bytes,
                  const std::shared_ptr<const void>& owner, const MappedFile* mapping);
  Tensor from_typed(DType dtype, const TensorProto& proto);
  Tensor from_external(DType dtype, const TensorProto& proto);
  std::shared_ptr<const MappedFile> external_file(std::string_view location);

  Bytes file_;
  std::shared_ptr<const void> owner_;
  const MappedFile* mapping_;
  std::string folder_;
  bool keep_mapped_;
  std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>> external_;
};

}  // namespace rlx::onnx
