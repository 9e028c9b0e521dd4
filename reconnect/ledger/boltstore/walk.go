package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"runtime/debug"
	"unsafe"

	bolt "go.etcd.io/bbolt"
)

// ErrDamaged says that the database has other data than was stored, or lacks data.
var ErrDamaged = errors.New("data is damaged")

// walked walks the database, and then runs f in a transaction, which is committed if f says so. No
// other transaction that writes runs meanwhile. In a database that is open to read, f cannot write.
func walked(db *bolt.DB, f func(tx *bolt.Tx, root *tree) (commit bool, err error)) error {
	tx, err := db.Begin(!db.IsReadOnly())
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	commit := false
	err = guard(func() error {
		commit, err = f(tx, walkAll(tx))
		return err
	})
	if err != nil || !commit {
		return err
	}
	return tx.Commit()
}

// guard runs f, and makes an ErrDamaged of a panic in it. Both the walk and bolt panic when they meet a
// damaged page, and a page that is not in the file any more is a fault.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()
	return f()
}

// must panics if a page is not as bolt writes it.
func must(ok bool, page uint64, wrong string) {
	if !ok {
		panic(fmt.Sprintf("page %d: %s", page, wrong))
	}
}

// walk reads the pages of a database as bolt has mapped them, and trusts none: each is visited once
// at most, and must have the one layout in which bolt writes it. Bolt itself trusts every number in
// a page, so that a damaged one can end the program, or let it read for ever. A walk panics when it
// meets damage: by must, or because an index is out of range.
type walk struct {
	data []byte
	size uint64 // of a page
	used []bool // the pages that were visited
}

// tree is the pages of a bucket.
type tree struct {
	buckets   map[string]*tree // in this one
	pairs     bool             // something else is in it
	unordered bool             // its keys do not ascend, so bolt may miss one, and no page is wrong otherwise

	last []byte // the key that was visited last
	leaf bool   // last is of a leaf
}

// visit takes the next key. The key in a branch is the first one of its child: bolt searches for it
// when it writes the child, and keeps the old child too if it finds none.
func (t *tree) visit(key []byte, leaf bool) {
	c := bytes.Compare(t.last, key)
	if t.last != nil && (t.leaf && c >= 0 || !t.leaf && c != 0) {
		t.unordered = true
	}
	t.last, t.leaf = key, leaf
}

// anyUnordered reports whether t or a bucket in it is unordered.
func (t *tree) anyUnordered() bool {
	for _, child := range t.buckets {
		if child.anyUnordered() {
			return true
		}
	}
	return t.unordered
}

// The layout of a page, in the byte order of the machine: its number (8 bytes), kind (2), count of
// elements (2), and count of further pages (4); the elements; and their keys and values without gaps.
// An element of a branch has the place of its key (4), the length (4), and the number of a page (8);
// one of a leaf has flags (4; 1: the value is a bucket), the place (4), and the lengths of key and value
// (4 each). A place counts from the element on.
const (
	pageHead    = 16
	elementSize = 16

	kindBranch = 1
	kindLeaf   = 2
	kindFree   = 16

	bucketHead = 16 // a bucket in a leaf: the number of its first page (8; 0: the page follows), and its sequence (8)
	noFreelist = ^uint64(0)
)

var order = binary.NativeEndian

func number32(b []byte) uint64 { return uint64(order.Uint32(b)) }

// walkAll walks everything that a transaction can reach. It returns the top of the buckets.
func walkAll(tx *bolt.Tx) *tree {
	info := tx.DB().Info()
	size := uint64(info.PageSize)
	data := unsafe.Slice(*(**byte)(unsafe.Pointer(&info.Data)), tx.Size())
	w := &walk{data: data, size: size, used: make([]bool, uint64(len(data))/size)}
	root := new(tree)
	first, free := w.metas()
	w.page(root, first)
	must(!root.unordered && !root.pairs, first, "the names of the buckets are wrong")
	if free == noFreelist { // bolt makes a list of the pages that it cannot reach
		must(!root.anyUnordered(), first, "the keys of a bucket do not ascend") // bolt.Open panics, in another goroutine
	} else {
		w.free(free)
	}
	return root
}

// metas reads the two pages with which a database begins, of which the newer one counts. Both must
// be sound, because bolt goes back by one change without a word if the newer one is damaged. It
// returns the first page of the buckets, and the list of free pages.
func (w *walk) metas() (first, free uint64) {
	const sum, newest = 56, 48 // where they are: the checksum, and the number of the transaction
	var tx uint64
	for i := range uint64(2) {
		m := w.data[i*w.size+pageHead:]
		h := fnv.New64a()
		h.Write(m[:sum])
		must(h.Sum64() == order.Uint64(m[sum:]), i, "the last change may be lost; any transaction that writes makes the page anew")
		if t := order.Uint64(m[newest:]); i == 0 || t > tx {
			tx, first, free = t, order.Uint64(m[16:]), order.Uint64(m[32:])
		}
		w.mark(i)
	}
	return first, free
}

// mark notes that a page is used.
func (w *walk) mark(id uint64) {
	must(id < uint64(len(w.used)), id, "it is not in the file")
	must(!w.used[id], id, "it is in two places")
	w.used[id] = true
}

// take returns the bytes of a page, and of those that belong to it.
func (w *walk) take(id uint64) []byte {
	w.mark(id)
	p := w.data[id*w.size:]
	must(order.Uint64(p) == id, id, "it has another number")
	end := id + number32(p[12:]) + 1
	for next := id + 1; next < end; next++ {
		w.mark(next)
	}
	n := (end - id) * w.size
	return p[:n:n] // so that an index beyond the page panics
}

// page walks a page of t, and those below it.
func (w *walk) page(t *tree, id uint64) { w.elements(t, w.take(id), id) }

// elements walks the elements of p, which is in the page id, and returns where the last one ends.
func (w *walk) elements(t *tree, p []byte, id uint64) (end uint64) {
	kind, count := order.Uint16(p[8:]), uint64(order.Uint16(p[10:]))
	leaf := kind == kindLeaf
	must(leaf || kind == kindBranch && count > 0, id, "it has no such kind")
	must(count > 0 || len(bytes.Trim(p[pageHead:], "\x00")) == 0, id, "it is not as empty as it says")
	end = pageHead + elementSize*count
	for at := uint64(pageHead); at < pageHead+elementSize*count; at += elementSize {
		e := p[at:]
		var flags, valueSize uint64
		if leaf {
			flags, valueSize, e = number32(e), number32(e[12:]), e[4:]
		}
		place, keySize := number32(e), number32(e[4:])
		must(at+place == end && flags <= 1 && keySize > 0, id, "an element is wrong")
		key, value := p[end:end+keySize], p[end+keySize:end+keySize+valueSize]
		end += keySize + valueSize
		t.visit(key, leaf)
		switch {
		case !leaf:
			w.page(t, order.Uint64(e[8:]))
		case flags == 1:
			w.bucket(t, key, value, id)
		default:
			t.pairs = true
		}
	}
	return end
}

// bucket walks a bucket of t, which is in the page id.
func (w *walk) bucket(t *tree, name, value []byte, id uint64) {
	child := new(tree)
	if t.buckets == nil {
		t.buckets = make(map[string]*tree)
	}
	t.buckets[string(name)] = child
	first := order.Uint64(value)
	if len(value) == bucketHead {
		w.page(child, first)
		return
	}
	p := value[bucketHead:len(value):len(value)]
	end := w.elements(child, p, id)
	must(first == 0 && order.Uint16(p[8:]) == kindLeaf && end == uint64(len(p)) && child.buckets == nil, id, "a bucket is wrong")
}

// free walks the list of free pages. Bolt would write over a page that is in use if the list had it.
func (w *walk) free(id uint64) {
	p := w.take(id)
	must(order.Uint16(p[8:]) == kindFree, id, "it is no list of free pages")
	count, ids := uint64(order.Uint16(p[10:])), p[pageHead:]
	if count == 0xffff {
		count, ids = order.Uint64(ids), ids[8:]
	}
	for ; count > 0; count-- {
		w.mark(order.Uint64(ids)) // so that it is in the list once
		ids = ids[8:]
	}
}
