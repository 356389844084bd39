package file

import "unsafe"

// Alignment is what direct I/O needs of memory, offsets and lengths: the block
// size of every device and file system that we know of, or a multiple of it.
const Alignment = 4096

// AlignedBuffer returns n zero bytes that start at a multiple of [Alignment].
func AlignedBuffer(n int) []byte {
	raw := make([]byte, n+Alignment)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(raw)))) & (Alignment - 1)
	return raw[skip : skip+n : skip+n]
}
