package boltstore_test

// This file has the program that tries damaged files, in a process of its own because a damaged file
// may end it or let it hang: the test binary is it if roleEnv is "surveyor". It writes a line for each
// case: its number, where the bit was, and how it ended.

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/redial-go/redial/reconnect/ledger"
	"github.com/redial-go/redial/reconnect/ledger/boltstore"
)

const (
	firstEnv   = "REDIAL_SURVEY_FIRST" // the first case
	finalEnv   = "REDIAL_SURVEY_LAST"  // the last one
	surveySeed = 7
)

// The outcomes of a case.
const (
	noEffect     = "no effect"
	reported     = "reported"
	failed       = "error"
	lostSilently = "lost silently"
)

// sample is a file that is damaged.
type sample struct {
	name    string
	options bolt.Options
	records uint64
	buckets int // other ones, so that the names need several pages
}

var samples = []sample{
	{"small", bolt.Options{}, 3, 0},
	{"tree", bolt.Options{PageSize: 1024}, 150, 2},
	{"many buckets", bolt.Options{PageSize: 1024}, 40, 40},
	{"no free list", bolt.Options{PageSize: 1024, NoFreelistSync: true}, 150, 2},
}

func (s sample) open(path string) (*bolt.DB, error) {
	o := s.options
	o.NoSync, o.NoGrowSync, o.Timeout = true, true, time.Second // nobody pulls the plug
	return boltstore.Open(path, 0o600, &o)
}

// make makes the file, by a number of changes, so that pages become free.
func (s sample) make(path string) error {
	db, err := s.open(path)
	if err != nil {
		return err
	}
	defer db.Close()
	store, err := boltstore.New(db, "out")
	if err != nil {
		return err
	}
	in, err := boltstore.CreateInbox(db, "in")
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for i := range s.buckets {
			b, err := tx.CreateBucket(fmt.Appendf(nil, "other %d", i))
			if err != nil {
				return err
			}
			if err := b.Put([]byte("key"), []byte("value")); err != nil {
				return err
			}
		}
		return nil
	})
	for id := uint64(1); id <= s.records && err == nil; id++ {
		c := ledger.Change{StoreState: ledger.StoreState{LastID: id, LastSeq: id + 10, AckedSeq: id / 3, Epoch: "peer"}}
		c.Put = []ledger.Record{record(id)}
		c.Put[0].Data = bytes.Repeat([]byte{byte(id)}, int(id*7%90))
		if id%3 == 0 {
			c.Delete = []uint64{id / 3}
		}
		if err = store.Apply(c); err == nil && id%10 < 3 {
			have, _ := in.Have()
			_, err = in.Take(have+1, func(*bolt.Tx) error { return nil })
		}
	}
	return err
}

// sight is what a program sees of a file.
type sight struct {
	state   ledger.StoreState
	records map[uint64]ledger.Record
	damaged []uint64
	epoch   string
	have    uint64
}

// look opens a file, and looks at it. If next is not 0, it makes a change after that: it replaces the
// message with the lowest ID by the message next, and takes one.
func (s sample) look(path string, next uint64) (got sight, err error) {
	db, err := s.open(path)
	if err != nil {
		return got, err
	}
	defer db.Close()
	store, err := boltstore.New(db, "out")
	if err != nil {
		return got, err
	}
	got.records = make(map[uint64]ledger.Record)
	got.state, err = store.Load(func(r ledger.Record) { got.records[r.ID] = r }, func(id uint64, _ []byte, _ error) { got.damaged = append(got.damaged, id) })
	if err != nil {
		return got, err
	}
	in, err := boltstore.NewInbox(db, "in")
	if err != nil {
		return got, err
	}
	got.epoch = in.Epoch()
	if got.have, err = in.Have(); err != nil || next == 0 {
		return got, err
	}
	c := ledger.Change{StoreState: got.state, Put: []ledger.Record{record(next)}, Delete: []uint64{got.lowest()}}
	c.StoreState.LastID = next
	if err := store.Apply(c); err != nil {
		return got, err
	}
	_, err = in.Take(got.have+1, func(tx *bolt.Tx) error { return nil })
	return got, err
}

func (s sight) lowest() uint64 {
	lowest := uint64(0)
	for id := range s.records {
		if lowest == 0 || id < lowest {
			lowest = id
		}
	}
	return lowest
}

// judge compares what is seen of a damaged file, before and after a change, with what was there.
func (s sample) judge(path string, want sight) string {
	next := want.state.LastID + 1
	got, err := s.look(path, next)
	if err != nil {
		return failed
	}
	outcome := got.compare(want)
	if outcome == lostSilently {
		return outcome
	}
	after := got
	after.records = make(map[uint64]ledger.Record)
	for id, r := range got.records {
		after.records[id] = r
	}
	delete(after.records, got.lowest())
	after.records[next] = record(next)
	after.state.LastID, after.have = next, got.have+1
	again, err := s.look(path, 0)
	if err != nil {
		return failed
	}
	if !reflect.DeepEqual(again, after) {
		return lostSilently
	}
	return outcome
}

// compare says how a sight differs from that of the sound file.
func (s sight) compare(want sight) string {
	missing := 0
	for id, r := range want.records {
		if got, ok := s.records[id]; !ok {
			missing++
		} else if !reflect.DeepEqual(got, r) {
			return lostSilently
		}
	}
	for _, id := range s.damaged { // no sound record is blamed
		if _, ok := s.records[id]; ok || id > want.state.LastID {
			return lostSilently
		}
	}
	switch {
	case s.state != want.state || s.have != want.have || s.epoch != want.epoch,
		missing > len(s.damaged), len(s.records)+missing != len(want.records):
		return lostSilently
	case len(s.damaged) > 0:
		return reported
	}
	return noEffect
}

// runSurveyor tries the cases from firstEnv to finalEnv.
func runSurveyor() error {
	dir := os.Getenv(dirEnv)
	files, wants, places := make([][]byte, len(samples)), make([]sight, len(samples)), make([][]place, len(samples))
	for i, s := range samples {
		var err error
		path := filepath.Join(dir, s.name)
		if files[i], err = os.ReadFile(path); err != nil {
			return err
		}
		if wants[i], err = s.look(path, 0); err != nil {
			return err
		}
		places[i] = placesOf(files[i])
	}
	var first, last uint64
	if _, err := fmt.Sscan(os.Getenv(firstEnv)+" "+os.Getenv(finalEnv), &first, &last); err != nil {
		return err
	}
	path := filepath.Join(dir, "damaged.db")
	for n := first; n <= last; n++ {
		random, which := rand.New(rand.NewPCG(surveySeed, n)), n%uint64(len(samples))
		file := slices.Clone(files[which])
		at, where := choose(random, places[which], len(file))
		file[at] ^= 1 << random.IntN(8)
		if err := os.WriteFile(path, file, 0o600); err != nil {
			return err
		}
		fmt.Printf("%d;%s;", n, where)
		fmt.Println(samples[which].judge(path, wants[which]))
	}
	return nil
}

// choose chooses a byte: each second one anywhere in the file, and the others in a kind of place that
// is chosen first, so that the rare kinds get their share.
func choose(random *rand.Rand, places []place, size int) (at int, where string) {
	if random.IntN(2) == 0 {
		at, where = random.IntN(size), elsewhere
		for _, p := range places {
			if p.from <= at && at < p.to {
				where = p.kind
			}
		}
		return at, where
	}
	kinds := make(map[string][]place)
	for _, p := range places {
		kinds[p.kind] = append(kinds[p.kind], p)
	}
	names := make([]string, 0, len(kinds))
	for kind := range kinds {
		names = append(names, kind)
	}
	slices.Sort(names)
	kind := kinds[names[random.IntN(len(names))]]
	p := kind[random.IntN(len(kind))]
	return p.from + random.IntN(p.to-p.from), p.kind
}

// place is a part of a file, in bytes.
type place struct {
	from, to int
	kind     string
}

const elsewhere = "unused pages, ends of pages"

const pageHead = 16

// placesOf reads a sound file by the rules of bolt's pages: see walk.go.
func placesOf(file []byte) []place {
	m := placing{file: file, size: int(binary.NativeEndian.Uint32(file[24:]))}
	meta := pageHead
	if m.u64(m.size+pageHead+48) > m.u64(pageHead+48) {
		meta += m.size
	}
	for i := range 2 {
		m.add(i*m.size+pageHead, 64, "meta pages")
	}
	m.page(m.u64(meta+16)*m.size, "")
	if free := m.u64(meta + 32); free > 0 { // -1: there is none
		at := free * m.size
		m.add(at, pageHead+8*m.u16(at+10), "list of free pages")
	}
	return m.places
}

type placing struct {
	file   []byte
	size   int // of a page
	places []place
}

func (m *placing) u16(at int) int { return int(binary.NativeEndian.Uint16(m.file[at:])) }
func (m *placing) u32(at int) int { return int(binary.NativeEndian.Uint32(m.file[at:])) }
func (m *placing) u64(at int) int { return int(binary.NativeEndian.Uint64(m.file[at:])) }

func (m *placing) add(from, size int, kind string) {
	if size > 0 {
		m.places = append(m.places, place{from, from + size, kind})
	}
}

// page adds a page of a bucket, and those below it. The bucket "" has the others.
func (m *placing) page(at int, bucket string) {
	m.add(at, pageHead, "heads of pages")
	for i := range m.u16(at + 10) {
		e := at + pageHead + 16*i
		if m.u16(at+8) == 1 {
			m.add(e, 16, "elements of branches")
			m.add(e+m.u32(e), m.u32(e+4), "keys in branches")
			m.page(m.u64(e+8)*m.size, bucket)
			continue
		}
		m.add(e, 16, "elements of leaves")
		m.pair(bucket, e+m.u32(e+4), m.u32(e+8), m.u32(e+12))
	}
}

// pair adds a key and a value.
func (m *placing) pair(bucket string, at, keySize, valueSize int) {
	key, value := string(m.file[at:at+keySize]), at+keySize
	if bucket == "" {
		m.add(at, keySize, "names of buckets")
		m.add(value, 16, "heads of buckets")
		if root := m.u64(value); root == 0 {
			m.page(value+16, key)
		} else {
			m.page(root*m.size, key)
		}
		return
	}
	kind := "other buckets"
	switch {
	case bucket == "in":
		kind = "inbox"
	case bucket == "out" && strings.HasPrefix(key, "state"):
		kind = "state"
	case bucket == "out":
		kind = "records"
	}
	m.add(at, keySize, kind+": keys")
	m.add(value, valueSize, kind+": values")
}
