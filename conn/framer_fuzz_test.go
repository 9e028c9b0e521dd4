package conn_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
)

const fuzzLimit = 2000

// chunks is a stream that comes in pieces, whose sizes cuts says again and again.
type chunks struct {
	stream, cuts []byte
	next         int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.stream) == 0 {
		return 0, io.EOF
	}
	size := len(c.stream)
	if len(c.cuts) > 0 {
		size = 1 + int(c.cuts[c.next%len(c.cuts)])
		c.next++
	}
	n := copy(p[:min(size, len(p))], c.stream)
	c.stream = c.stream[n:]
	return n, nil
}

// roundTrip demands that messages come out of f as they went in, whatever the
// pieces, and that half a message does not come out at all.
func roundTrip(t *testing.T, f conn.Framer, messages [][]byte, cuts []byte) {
	var stream []byte
	var sent [][]byte
	var starts []int
	for _, m := range messages {
		starts = append(starts, len(stream))
		framed, err := f.AppendFrame(stream, m)
		if err != nil {
			require.ErrorIs(t, err, conn.ErrBadMessage)
			starts = starts[:len(sent)]
			continue
		}
		stream, sent = framed, append(sent, m)
	}
	r := bufio.NewReaderSize(&chunks{stream: stream, cuts: cuts}, 16)
	var buf []byte
	for _, want := range sent {
		got, err := f.ReadFrame(r, buf, max(len(want), 1))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
		buf = got
	}
	_, err := f.ReadFrame(r, buf, fuzzLimit)
	require.Equal(t, io.EOF, err)

	if last := len(sent) - 1; last >= 0 { // all but the last byte of the last
		r := bufio.NewReaderSize(&chunks{stream: stream[starts[last] : len(stream)-1], cuts: cuts}, 16)
		_, err := f.ReadFrame(r, nil, len(stream))
		require.Error(t, err)
	}
}

// survive has f read anything. It ends with an error, holds little more than the
// limit, and asks for little more memory than came in.
func survive(t *testing.T, f conn.Framer, data, cuts []byte) {
	r := bufio.NewReaderSize(&chunks{stream: data, cuts: cuts}, 16)
	var end error
	used := allocated(func() {
		for m := []byte(nil); end == nil; {
			if m, end = f.ReadFrame(r, m, fuzzLimit); end == nil && (len(m) > fuzzLimit || cap(m) > 2*fuzzLimit) {
				t.Fatalf("a message of %d bytes in %d", len(m), cap(m))
			}
		}
	})
	if used > 64<<10+10*uint64(len(data)) {
		t.Fatalf("%d bytes allocated for %d", used, len(data))
	}
	var big *conn.TooBigError
	if errors.As(end, &big) {
		require.LessOrEqual(t, big.Limit, int64(fuzzLimit))
	}
}

// kinds of Lines and LengthPrefix, chosen by a byte.
func lines(kind byte) conn.Lines {
	return [...]conn.Lines{{}, {CRLF: true}, {Limit: 100}}[kind%3]
}

func prefix(kind byte) conn.LengthPrefix { return prefixes[int(kind)%len(prefixes)] }

func FuzzLines(f *testing.F) {
	for _, s := range []string{"", "\n", "a\nb\n", "a\r\nb", "\r\r\n\r", strings.Repeat("x", 2000) + "\r\n", strings.Repeat("y", 2002)} {
		for kind := range byte(3) {
			f.Add([]byte(s), []byte{0, 7, 15}, kind)
		}
	}
	f.Fuzz(func(t *testing.T, data, cuts []byte, kind byte) {
		roundTrip(t, lines(kind), bytes.SplitAfter(data, []byte{'|'}), cuts)
		survive(t, lines(kind), data, cuts)
	})
}

func FuzzLengthPrefix(f *testing.F) {
	for _, s := range []string{
		"", "\x00", "\x03abc", "\x00\x03abc", "\x03\x00abc", "\x00\x00\x00\x03abc", "\x03\x00\x00\x00abc", "\x83\x00abc",
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\xff\xff\xff\xff", "\x00\x00\x07\xd0abc", "\x00\x00\x00\x00\x00\x00\x00\x00",
	} {
		for kind := range byte(len(prefixes)) {
			f.Add([]byte(s), []byte{0, 7, 15}, kind)
		}
	}
	f.Fuzz(func(t *testing.T, data, cuts []byte, kind byte) {
		roundTrip(t, prefix(kind), bytes.SplitAfter(data, []byte{'|'}), cuts)
		survive(t, prefix(kind), data, cuts)
	})
}
