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

// ErrDamaged says that something in the database is not what was stored.
var ErrDamaged = errors.New("boltstore: data is damaged")

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
		root, err := walkAll(tx)
		if err == nil {
			commit, err = f(tx, root)
		}
		return err
	})
	if err != nil || !commit {
		return err
	}
	return tx.Commit()
}

// guard runs f, and makes an error of a panic in it. Bolt panics when it meets a damaged page, and a
// page that is not in the file any more is a fault.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: a page cannot be read: %v", ErrDamaged, r)
		}
	}()
	return f()
}

// walk reads the pages of a database as bolt has mapped them, and trusts none: each is visited once
// at most, and must have the one layout in which bolt writes it. Bolt itself trusts every number in
// a page, so that a damaged one can end the program, or let it read for ever.
type walk struct {
	data []byte
	size uint64 // of a page
	used []bool // the pages that were visited
}

// tree is the pages of a bucket.
type tree struct {
	buckets   map[string]*tree // in this one
	pairs     int              // what else is in it
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
// one of a leaf has flags (4), the place (4), and the lengths of key and value (4 each).
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

// walkAll walks everything that a transaction can reach. It returns the top of the buckets.
func walkAll(tx *bolt.Tx) (*tree, error) {
	info := tx.DB().Info()
	size := uint64(info.PageSize)
	data := unsafe.Slice(*(**byte)(unsafe.Pointer(&info.Data)), tx.Size())
	w := &walk{data: data, size: size, used: make([]bool, uint64(len(data))/size)}
	first, free, err := w.metas()
	if err != nil {
		return nil, err
	}
	root := new(tree)
	if err := w.page(root, first); err != nil {
		return nil, err
	}
	switch {
	case root.unordered || root.pairs > 0:
		return nil, fmt.Errorf("%w: the names of the buckets", ErrDamaged)
	case free == noFreelist && root.anyUnordered(): // bolt.Open panics, in another goroutine
		return nil, fmt.Errorf("%w: the keys of a bucket do not ascend", ErrDamaged)
	}
	return root, w.free(free)
}

// metas reads the two pages with which a database begins, of which the newer one counts. Both must
// be sound, because bolt goes back by one change without a word if the newer one is damaged. It
// returns the first page of the buckets, and the list of free pages.
func (w *walk) metas() (first, free uint64, err error) {
	const sum, newest = 56, 48 // where they are: the checksum, and the number of the transaction
	var tx uint64
	for i := range uint64(2) {
		m := w.data[i*w.size+pageHead : (i+1)*w.size]
		h := fnv.New64a()
		h.Write(m[:sum])
		if h.Sum64() != order.Uint64(m[sum:]) {
			return 0, 0, fmt.Errorf("%w: page %d, so that the last change may be lost; any transaction that writes makes the page anew", ErrDamaged, i)
		}
		if t := order.Uint64(m[newest:]); i == 0 || t > tx {
			tx, first, free = t, order.Uint64(m[16:]), order.Uint64(m[32:])
		}
		w.used[i] = true
	}
	return first, free, nil
}

// take returns the bytes of a page, and of those that belong to it.
func (w *walk) take(id uint64) ([]byte, error) {
	n := uint64(len(w.used))
	if id >= n {
		return nil, fmt.Errorf("%w: there is no page %d", ErrDamaged, id)
	}
	p := w.data[id*w.size:]
	end := id + uint64(order.Uint32(p[12:])) + 1
	if order.Uint64(p) != id || end > n {
		return nil, fmt.Errorf("%w: the head of page %d", ErrDamaged, id)
	}
	for i := id; i < end; i++ {
		if w.used[i] {
			return nil, fmt.Errorf("%w: page %d is in two places", ErrDamaged, i)
		}
		w.used[i] = true
	}
	return p[:(end-id)*w.size], nil
}

// page walks a page of t, and those below it.
func (w *walk) page(t *tree, id uint64) error {
	p, err := w.take(id)
	if err != nil {
		return err
	}
	if _, err := w.elements(t, p); err != nil {
		return fmt.Errorf("%w (page %d)", err, id)
	}
	return nil
}

// elements walks the elements of a page, and returns where the last one ends.
func (w *walk) elements(t *tree, p []byte) (uint64, error) {
	kind, count := order.Uint16(p[8:]), uint64(order.Uint16(p[10:]))
	leaf := kind == kindLeaf
	end := pageHead + elementSize*count
	switch {
	case !leaf && kind != kindBranch, end > uint64(len(p)):
		return 0, fmt.Errorf("%w: the head of a page", ErrDamaged)
	case count == 0 && (!leaf || len(bytes.Trim(p[pageHead:], "\x00")) > 0):
		return 0, fmt.Errorf("%w: a page is not as empty as it says", ErrDamaged)
	}
	for i := range count {
		at := pageHead + elementSize*i
		e := elementAt(p[at:], leaf)
		if at+e.place != end || e.flags > 1 || e.keySize == 0 || e.keySize+e.valueSize > uint64(len(p))-end {
			return 0, fmt.Errorf("%w: element %d of a page", ErrDamaged, i)
		}
		key, value := p[end:end+e.keySize], p[end+e.keySize:end+e.keySize+e.valueSize]
		end += e.keySize + e.valueSize
		t.visit(key, leaf)
		var err error
		switch {
		case !leaf:
			err = w.page(t, e.page)
		case e.flags == 1:
			err = w.bucket(t, key, value)
		default:
			t.pairs++
		}
		if err != nil {
			return 0, err
		}
	}
	return end, nil
}

// element is one element of a page.
type element struct {
	flags                     uint32 // 1: the value is a bucket
	place, keySize, valueSize uint64 // place: from the element on
	page                      uint64
}

func elementAt(e []byte, leaf bool) element {
	n := func(i int) uint64 { return uint64(order.Uint32(e[4*i:])) }
	if leaf {
		return element{flags: uint32(n(0)), place: n(1), keySize: n(2), valueSize: n(3)}
	}
	return element{place: n(0), keySize: n(1), page: order.Uint64(e[8:])}
}

// bucket walks a bucket of t.
func (w *walk) bucket(t *tree, name, value []byte) error {
	child := new(tree)
	if t.buckets == nil {
		t.buckets = make(map[string]*tree)
	}
	t.buckets[string(name)] = child
	if len(value) == bucketHead {
		return w.page(child, order.Uint64(value))
	}
	if len(value) < bucketHead+pageHead || order.Uint64(value) != 0 || order.Uint16(value[bucketHead+8:]) != kindLeaf {
		return fmt.Errorf("%w: bucket %q", ErrDamaged, name)
	}
	end, err := w.elements(child, value[bucketHead:])
	if err == nil && (end != uint64(len(value)-bucketHead) || child.buckets != nil) {
		err = fmt.Errorf("%w: bucket %q", ErrDamaged, name)
	}
	return err
}

// free walks the list of free pages. Bolt would write over a page that is in use if the list had it.
func (w *walk) free(id uint64) error {
	if id == noFreelist {
		return nil // bolt makes a list of the pages that it cannot reach
	}
	p, err := w.take(id)
	if err != nil {
		return err
	}
	count, ids := uint64(order.Uint16(p[10:])), p[pageHead:]
	if count == 0xffff {
		count, ids = order.Uint64(ids), ids[8:]
	}
	if order.Uint16(p[8:]) != kindFree || count > uint64(len(ids))/8 {
		return fmt.Errorf("%w: the list of free pages", ErrDamaged)
	}
	for i := range count {
		id := order.Uint64(ids[8*i:])
		if id >= uint64(len(w.used)) || w.used[id] {
			return fmt.Errorf("%w: the list of free pages has page %d", ErrDamaged, id)
		}
		w.used[id] = true // so that it is in the list once
	}
	return nil
}
