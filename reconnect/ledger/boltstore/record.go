package boltstore

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"time"

	"github.com/redial-go/redial/reconnect/ledger"
)

// A record has the key ID, in 8 bytes. Its value is a seal over the key and the rest, ID, Seq, Added in
// ns since 1970, and the data. The ID in the value says whether the key of a damaged record is right.
const recordHead = 4 + 8 + 8 + 8

func recordKey(id uint64) []byte { return binary.BigEndian.AppendUint64(nil, id) }

func encodeRecord(key []byte, r ledger.Record) []byte {
	v := make([]byte, 4, recordHead+len(r.Data))
	for _, n := range []uint64{r.ID, r.Seq, uint64(r.Added.UnixNano())} {
		v = binary.BigEndian.AppendUint64(v, n)
	}
	return seal(key, append(v, r.Data...))
}

func decodeRecord(key, v []byte) (ledger.Record, bool) {
	if len(v) < recordHead || !bytes.Equal(key, v[4:12]) || !sealed(key, v) {
		return ledger.Record{}, false
	}
	return ledger.Record{
		ID: binary.BigEndian.Uint64(key), Seq: binary.BigEndian.Uint64(v[12:]),
		Added: time.Unix(0, int64(binary.BigEndian.Uint64(v[20:]))),
		Data:  slices.Clone(v[recordHead:]),
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
	if len(p.key) < 8 || len(p.value) < 12 || !bytes.Equal(p.key[:8], p.value[4:12]) {
		return 0
	}
	return binary.BigEndian.Uint64(p.key)
}

// data returns what is left of the data.
func (p pair) data() []byte { return p.value[min(recordHead, len(p.value)):] }

// state is what a Store keeps twice, under stateKeys.
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

// sealOf returns the checksum in v.
func sealOf(v []byte) uint64 { return uint64(binary.BigEndian.Uint32(v)) }

// sealed reports whether v has the right checksum.
func sealed(key, v []byte) bool { return sealOf(v) == uint64(checksum(key, v)) }

func checksum(key, v []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, checksums), checksums, v[4:])
}
