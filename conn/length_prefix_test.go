package conn_test

import (
	"bufio"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
)

// prefixes are all the kinds of prefix there are.
var prefixes = []conn.LengthPrefix{
	{}, {Size: 1}, {Size: 2}, {Size: 4}, {Varint: true},
}

func TestPrefixesOnTheWire(t *testing.T) {
	message := strings.Repeat("x", 200)
	for prefix, f := range map[string]conn.LengthPrefix{
		"\xc8":             {Size: 1},
		"\x00\xc8":         {Size: 2},
		"\x00\x00\x00\xc8": {},
		"\xc8\x01":         {Varint: true},
	} {
		require.Equal(t, prefix+message, written(t, f, message))
		got, err := frames(f, prefix+message, 200)
		require.Equal(t, io.EOF, err)
		require.Equal(t, []string{message}, got)
	}
}

func TestMessagesFollowEachOther(t *testing.T) {
	want := []string{"", "a", "", strings.Repeat("b", 255), "c"}
	for _, f := range prefixes {
		got, err := frames(f, written(t, f, want...), 255)
		require.Equal(t, io.EOF, err)
		require.Equal(t, want, got)
	}
}

func TestAMessageTooLongForItsPrefixIsNotWritten(t *testing.T) {
	_, err := conn.LengthPrefix{Size: 1}.AppendFrame(nil, make([]byte, 256))
	require.EqualError(t, err, "bad message: 256 bytes are more than its length prefix can say (255)")
	require.ErrorIs(t, err, conn.ErrBadMessage)
	_, err = conn.LengthPrefix{Size: 2}.AppendFrame(nil, make([]byte, 65536))
	require.ErrorIs(t, err, conn.ErrBadMessage)
	_, err = conn.LengthPrefix{Varint: true}.AppendFrame(nil, make([]byte, 65536))
	require.NoError(t, err)
}

// Promise 2: the limit is checked before memory is allocated.
func TestALengthOverTheLimitIsRefusedBeforeItsBody(t *testing.T) {
	for stream, f := range map[string]conn.LengthPrefix{
		"\x65":                                 {Size: 1},
		"\xff\xff":                             {Size: 2},
		"\xff\xff\xff\xff":                     {},
		"\xff\xff\xff\xff\xff\xff\xff\xff\x7f": {Varint: true},
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01": {Varint: true},
	} {
		_, err := frames(f, stream, 100)
		require.Equal(t, &conn.TooBigError{Limit: 100}, err)
	}
}

// Promise 2: a length within the limit is no reason to ask for
// memory either.
func TestALengthThatIsALieCostsNothing(t *testing.T) {
	f := conn.LengthPrefix{}
	stream := "\x3f\xff\xff\xff" + strings.Repeat("x", 100)
	require.Less(t, allocated(func() {
		_, err := f.ReadFrame(bufio.NewReaderSize(strings.NewReader(stream), 16), nil, 1<<30)
		require.Equal(t, io.ErrUnexpectedEOF, err)
	}), uint64(1<<20), "the length says 1 GiB; what other goroutines ask for meanwhile counts too")
}

// allocated is how many bytes f asks for.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestAVarintOfMoreThan64BitsIsRefused(t *testing.T) {
	for _, last := range []string{"\x02", "\x80"} {
		_, err := frames(conn.LengthPrefix{Varint: true}, strings.Repeat("\xff", 9)+last, 100)
		require.ErrorContains(t, err, "overflows a 64-bit integer")
	}
}

func TestLengthPrefixValidateNamesTheOption(t *testing.T) {
	for _, f := range prefixes {
		require.NoError(t, f.Validate())
	}
	for _, size := range []int{-1, 3, 8} {
		require.ErrorContains(t, conn.LengthPrefix{Size: size}.Validate(), "conn: option LengthPrefix.Size is ")
	}
	require.ErrorContains(t, conn.LengthPrefix{Varint: true, Size: 4}.Validate(), "conn: option LengthPrefix.Varint")
}

func TestReadBodyAppendsExactly(t *testing.T) {
	for _, buf := range [][]byte{nil, []byte("ab"), make([]byte, 2, 10), make([]byte, 2, 20_000)} {
		for _, n := range []int{0, 1, 16, 511, 4096, 10_000} {
			r := bufio.NewReaderSize(&zeros{}, 16)
			got, err := conn.ReadBody(r, buf, n)
			require.NoError(t, err)
			require.Equal(t, string(buf)+strings.Repeat("\x00", n), string(got))
		}
	}
}

func TestReadBodyRefusesWhatCannotBe(t *testing.T) {
	for _, n := range []int{-1, int(^uint(0) >> 1)} {
		_, err := conn.ReadBody(bufio.NewReader(&zeros{}), []byte("x"), n)
		require.ErrorContains(t, err, "bytes cannot follow")
	}
}

func TestABodyCutShortIsUnexpectedEOF(t *testing.T) {
	for _, stream := range []string{"", "ab"} {
		_, err := conn.ReadBody(bufio.NewReader(strings.NewReader(stream)), nil, 3)
		require.Equal(t, io.ErrUnexpectedEOF, err)
	}
}
