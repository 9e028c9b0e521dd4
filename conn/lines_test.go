package conn_test

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
)

// frames reads all that f finds in stream, and why it stopped.
func frames(f conn.Framer, stream string, limit int) (messages []string, err error) {
	r := bufio.NewReaderSize(strings.NewReader(stream), 16)
	for {
		m, err := f.ReadFrame(r, nil, limit)
		if err != nil {
			return messages, err
		}
		messages = append(messages, string(m))
	}
}

// written is what f makes of messages.
func written(t *testing.T, f conn.Framer, messages ...string) string {
	t.Helper()
	var stream []byte
	for _, m := range messages {
		var err error
		stream, err = f.AppendFrame(stream, []byte(m))
		require.NoError(t, err)
	}
	return string(stream)
}

func TestALineEndsInLFOrCRLF(t *testing.T) {
	got, err := frames(conn.Lines{}, "a\nb\r\n\n\r\nc\r\r\nd\re\n"+strings.Repeat("x", 100)+"\r\n", 1000)
	require.Equal(t, io.EOF, err)
	require.Equal(t, []string{"a", "b", "", "", "c\r", "d\re", strings.Repeat("x", 100)}, got)
}

func TestLinesAreWrittenWithTheirEnd(t *testing.T) {
	require.Equal(t, "a\n\n", written(t, conn.Lines{}, "a", ""))
	require.Equal(t, "a\r\n\r\n", written(t, conn.Lines{CRLF: true}, "a", ""))
}

func TestWhatWouldBeReadDifferentlyIsNotWritten(t *testing.T) {
	for message, want := range map[string]string{
		"a\nb":  "bad message: a line feed inside a line",
		"\n":    "bad message: a line feed inside a line",
		"a\r":   "bad message: a CR at the end of a line would be lost",
		"abcde": "bad message: 5 bytes are more than a line may have (4)",
	} {
		_, err := conn.Lines{Limit: 4}.AppendFrame(nil, []byte(message))
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, conn.ErrBadMessage)
	}
}

// The limit is on the line, not on its end. A reader's buffer of 16 bytes splits
// CR and LF in each way.
func TestALineMayBeAsLongAsTheLimit(t *testing.T) {
	for size := range 40 {
		for _, end := range []string{"\n", "\r\n"} {
			line := strings.Repeat("x", size)
			got, err := frames(conn.Lines{}, line+end, size)
			require.Equal(t, io.EOF, err)
			require.Equal(t, []string{line}, got)

			_, err = frames(conn.Lines{}, line+"y"+end, size)
			require.Equal(t, &conn.TooBigError{Limit: int64(size)}, err)
		}
	}
}

func TestTheSmallerLimitOfALineHolds(t *testing.T) {
	for _, l := range []struct{ line, conn int }{{3, 100}, {100, 3}} {
		_, err := frames(conn.Lines{Limit: l.line}, "abcd\n", l.conn)
		require.Equal(t, &conn.TooBigError{Limit: 3}, err)
	}
}

func TestTheSmallestLimitOfALineIsOneByte(t *testing.T) {
	l := conn.Lines{Limit: 1}
	_, err := l.AppendFrame(nil, []byte("a"))
	require.NoError(t, err)
	_, err = l.AppendFrame(nil, []byte("ab"))
	require.ErrorIs(t, err, conn.ErrBadMessage)
	_, err = frames(l, "a\nab\n", 100)
	require.Equal(t, &conn.TooBigError{Limit: 1}, err)
}

// A Framer may be given a buffer that has bytes of an earlier message.
func TestALineReplacesWhatIsInTheBuffer(t *testing.T) {
	got, err := conn.Lines{}.ReadFrame(bufio.NewReader(strings.NewReader("new\n")), []byte("old"), 100)
	require.NoError(t, err)
	require.Equal(t, "new", string(got))
}

// Without a limit this would grow until the memory ends.
func TestALineWithoutEndIsGivenUpAtTheLimit(t *testing.T) {
	endless := &zeros{}
	_, err := conn.Lines{}.ReadFrame(bufio.NewReader(endless), nil, 10_000)
	require.Equal(t, &conn.TooBigError{Limit: 10_000}, err)
	require.Less(t, endless.read, 20_000)
}

// zeros is an endless stream.
type zeros struct{ read int }

func (z *zeros) Read(p []byte) (int, error) {
	clear(p)
	z.read += len(p)
	return len(p), nil
}

func TestALastLineWithoutLineFeedIsNone(t *testing.T) {
	got, err := frames(conn.Lines{}, "a\nb", 1000)
	require.Equal(t, []string{"a"}, got)
	require.Error(t, err)
}

func TestLinesValidateNamesTheOption(t *testing.T) {
	require.NoError(t, conn.Lines{}.Validate())
	require.ErrorContains(t, conn.Lines{Limit: -1}.Validate(), "conn: option Lines.Limit is -1")
}

func TestAFramerPassesTheErrorOfTheReaderOn(t *testing.T) {
	lost := errors.New("lost")
	for _, f := range []conn.Framer{conn.Lines{}, conn.LengthPrefix{}, conn.LengthPrefix{Varint: true}} {
		for _, stream := range []string{"", "\x80", "\x00\x00\x00\x05ab"} {
			r := bufio.NewReader(io.MultiReader(strings.NewReader(stream), &failing{lost}))
			_, err := f.ReadFrame(r, nil, 1<<30)
			for err == nil { // four short messages to some
				_, err = f.ReadFrame(r, nil, 1<<30)
			}
			require.ErrorIs(t, err, lost)
		}
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }
