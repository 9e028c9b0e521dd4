package conn_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
)

// Each bound holds exactly: one less and the bound itself are within it, and one more is not.
func TestBoundsAreExact(t *testing.T) {
	line := func(f conn.Framer) func(t *testing.T, n, k int) bool {
		return func(t *testing.T, n, k int) bool {
			_, err := f.AppendFrame(nil, []byte(strings.Repeat("x", k)))
			return err == nil
		}
	}
	for _, b := range []struct {
		name   string
		n      int
		within func(t *testing.T, n, k int) bool
	}{
		{"Lines.Limit, written", 20, line(conn.Lines{Limit: 20})},
		{"LengthPrefix.Size 1, written", 1<<8 - 1, line(conn.LengthPrefix{Size: 1})},
		{"LengthPrefix.Size 2, written", 1<<16 - 1, line(conn.LengthPrefix{Size: 2})},
		{"Lines.Limit, read", 20, func(t *testing.T, n, k int) bool {
			return framedRead(t, conn.Lines{Limit: n}, 100, strings.Repeat("x", k)+"\n")
		}},
		{"ReadLimit with Lines", 20, func(t *testing.T, n, k int) bool {
			return framedRead(t, conn.Lines{}, n, strings.Repeat("x", k)+"\n")
		}},
		{"ReadLimit with LengthPrefix", 20, func(t *testing.T, n, k int) bool {
			return framedRead(t, conn.LengthPrefix{Size: 1}, n, string([]byte{byte(k)})+strings.Repeat("x", k))
		}},
		{"ReadLimit with a varint", 200, func(t *testing.T, n, k int) bool {
			head := string([]byte{byte(k&0x7f | 0x80), byte(k >> 7)})
			return framedRead(t, conn.LengthPrefix{Varint: true}, n, head+strings.Repeat("x", k))
		}},
		{"Split.Parts", 3, func(t *testing.T, n, k int) bool {
			got, _ := splitOf(t, conn.Split{Func: bufio.ScanLines, Parts: n}, strings.Repeat("1\n", k))
			return len(got) == k
		}},
		{"Split.Parts by default", 4096, func(t *testing.T, _, k int) bool {
			got, _ := splitOf(t, conn.Split{Func: bufio.ScanLines}, strings.Repeat("1\n", k))
			return len(got) == k
		}},
	} {
		t.Run(b.name, func(t *testing.T) {
			for k := b.n - 1; k <= b.n+1; k++ {
				require.Equal(t, k <= b.n, b.within(t, b.n, k), "%d of %d", k, b.n)
			}
		})
	}
}

// framedRead reports whether a Framed with a ReadLimit reads the message of a stream.
func framedRead(t *testing.T, f conn.Framer, limit int, stream string) bool {
	t.Helper()
	ours, theirs := net.Pipe()
	go io.WriteString(theirs, stream)
	c, err := conn.NewFramed(ours, f, &conn.FramedOptions{Limits: conn.Limits{ReadLimit: int64(limit)}})
	require.NoError(t, err)
	defer theirs.Close()
	defer c.CloseNow()
	_, err = c.Read(nil)
	if err != nil {
		_, big := errors.AsType[*conn.TooBigError](err)
		require.True(t, big, "%v", err)
	}
	return err == nil
}
