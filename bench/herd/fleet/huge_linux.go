package fleet

import (
	"syscall"
	"unsafe"
)

const hugePages = 14 // MADV_HUGEPAGE of madvise(2)

// inHugePages asks the kernel to back s, which was not written to yet, with
// pages of 2 MiB: the clients of a large herd are visited in random order, and with
// small pages most visits wait for the address to be looked up. A refusal changes
// nothing but the speed.
func inHugePages[E any](s []E) {
	const page = 2 << 20
	start := uintptr(unsafe.Pointer(unsafe.SliceData(s)))
	size := uintptr(len(s)) * unsafe.Sizeof(*new(E))
	skip := -start & (page - 1)
	if size < skip+page {
		return
	}
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), size)
	_ = syscall.Madvise(bytes[skip:skip+(size-skip)&^(page-1)], hugePages)
}
