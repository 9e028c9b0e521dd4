package boltstore

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"time"

	"github.com/redial-go/redial/reconnect/ledger"
)

// A record has the key ID, in 8 bytes. Its value is a seal over the key and the rest, Seq, Added in
// ns since 1970, the data, and the checksum of the key, which says whether the key of a damaged
// record is right.
const (
	recordHead = 4 + 8 + 8
	recordTail = 4
)

func recordKey(id uint64) []byte { return binary.BigEndian.AppendUint64(nil, id) }

func encodeRecord(key []byte, r ledger.Record) []byte {
	v := make([]byte, 4, recordHead+len(r.Data)+recordTail)
	v = binary.BigEndian.AppendUint64(v, r.Seq)
	v = binary.BigEndian.AppendUint64(v, uint64(r.Added.UnixNano()))
	v = append(v, r.Data...)
	v = binary.BigEndian.AppendUint32(v, crc32.Checksum(key, checksums))
	return seal(key, v)
}

func decodeRecord(key, v []byte) (ledger.Record, bool) {
	if len(key) != 8 || len(v) < recordHead+recordTail || !sealed(key, v) {
		return ledger.Record{}, false
	}
	return ledger.Record{
		ID: binary.BigEndian.Uint64(key), Seq: binary.BigEndian.Uint64(v[4:]),
		Added: time.Unix(0, int64(binary.BigEndian.Uint64(v[12:]))),
		Data:  slices.Clone(v[recordHead : len(v)-recordTail]),
	}, true
}

// asidePrefix begins the key of a pair that was found damaged and moved out of the way of the
// records. Its first key follows.
const asidePrefix = "damaged "

// pair is a damaged record.
type pair struct {
	key   []byte // without asidePrefix
	value []byte
}

// id returns the ID, or 0 if the key may be what is damaged.
func (p pair) id() uint64 {
	if len(p.key) < 8 || len(p.value) < recordTail ||
		binary.BigEndian.Uint32(p.value[len(p.value)-recordTail:]) != crc32.Checksum(p.key[:8], checksums) {
		return 0
	}
	return binary.BigEndian.Uint64(p.key)
}

// data returns what is left of the data.
func (p pair) data() []byte {
	v := p.value[min(recordHead, len(p.value)):]
	if p.id() != 0 {
		v = v[:max(0, len(v)-recordTail)]
	}
	return v
}

// state is what a Store keeps twice, under stateKeys. A bucket without a change has none.
type state struct {
	ledger.StoreState
	change  uint64 // how many changes there were; the sequence of the bucket, which is in another page, has it too
	records uint64 // how many records there are
	sum     uint64 // of their seals
}

var stateKeys = [2]string{"state", "state copy"}

// A state is a seal, LastID, LastSeq, AckedSeq, change, records, sum, and Epoch.
const stateHead = 4 + 6*8

func encodeState(s state) []byte {
	v := make([]byte, 4, stateHead+len(s.Epoch))
	for _, n := range []uint64{s.LastID, s.LastSeq, s.AckedSeq, s.change, s.records, s.sum} {
		v = binary.BigEndian.AppendUint64(v, n)
	}
	return seal(nil, append(v, s.Epoch...))
}

func decodeState(v []byte) (s state, ok bool) {
	if len(v) < stateHead || !sealed(nil, v) {
		return state{}, false
	}
	for i, n := range []*uint64{&s.LastID, &s.LastSeq, &s.AckedSeq, &s.change, &s.records, &s.sum} {
		*n = binary.BigEndian.Uint64(v[4+8*i:])
	}
	s.Epoch = string(v[stateHead:])
	return s, true
}

var checksums = crc32.MakeTable(crc32.Castagnoli)

// seal puts the checksum of key and of v from byte 4 on into v, and returns v.
func seal(key, v []byte) []byte {
	binary.BigEndian.PutUint32(v, checksum(key, v))
	return v
}

// sealed reports whether v has the right checksum.
func sealed(key, v []byte) bool { return binary.BigEndian.Uint32(v) == checksum(key, v) }

func checksum(key, v []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, checksums), checksums, v[4:])
}
