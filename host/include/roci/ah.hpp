// SPDX-License-Identifier: BSD-2-Clause-Patent
#pragma once

#include <roci/pd.hpp>

#include <roci_hwif.hpp>

#include <infiniband/verbs.h>

#include <cstddef>

namespace roci {

/// Address handle: where a UD message goes. A host object that the device knows nothing of: each request
/// carries a copy of its address vector. It is the structure that programs see, so that posting finds
/// the vector without a look-up.
class Ah final : public ibv_ah {
 public:
  /// Zeroed bytes behind the public part, where newer libraries look for fields of their own.
  static constexpr unsigned TAIL_BYTES = 1024;

  /// @throws Error  EINVAL names the field; EHOSTUNREACH: no MAC address is known for the GID
  Ah(Pd& pd, const ibv_ah_attr& attr);
  Ah(const Ah&) = delete;
  Ah& operator=(const Ah&) = delete;
  ~Ah();

  /// What goes into requests.
  const hwif::AddressVector& vector() const noexcept { return vector_; }
  /// Queue pairs of another protection domain may not use it.
  const Pd& domain() const noexcept { return pd_; }

 private:
  [[maybe_unused]] std::byte tail_[TAIL_BYTES]{};
  Pd& pd_;
  hwif::AddressVector vector_;
};

/// The address of the sender of a message: attributes for an answer to it (ibv_init_ah_from_wc).
/// @param grh  first 40 bytes of the receive; read if the completion has IBV_WC_GRH
/// @throws Error  EINVAL: no GRH, or none of RoCE v1; ENOENT: its DGID is none of ours
ibv_ah_attr sender_of(Device& device, const ibv_wc& wc, const ibv_grh* grh);

}  // namespace roci
