// schemas/aligned_vectors.hpp -- what the verifier of FlatBuffers leaves out: that a vector's
// numbers lie where such numbers may.
//
// It asks that of a table's fields and of a vector's length, four bytes; eight that begin behind
// them are read as they stand. The generated headers include this, so that whoever verifies asks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstdint>

template <>
inline bool flatbuffers::Verifier::VerifyVector<int64_t>(const Vector<int64_t>* vector) const {
    if (vector == nullptr) return true;
    if (!VerifyVectorOrString(reinterpret_cast<const uint8_t*>(vector), sizeof(int64_t)))
        return false;
    return vector->size() == 0 ||
           reinterpret_cast<uintptr_t>(vector->Data()) % alignof(int64_t) == 0;
}

template <>
inline bool flatbuffers::Verifier::VerifyVector<uint64_t>(const Vector<uint64_t>* vector) const {
    return VerifyVector(reinterpret_cast<const Vector<int64_t>*>(vector));
}
