package conn_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
)

// splitOf returns the texts of all parts of frames, and the error behind them.
func splitOf(t testing.TB, s conn.Split, frames ...string) (parts []string, err error) {
	fake := conntest.NewFake(&conntest.FakeOptions{Transport: true})
	for _, f := range frames {
		fake.Deliver(conn.TextMessage(f))
	}
	fake.HangUp()
	c, err := conn.NewSplit(fake.Conn(), s)
	require.NoError(t, err)
	defer c.CloseNow()
	for {
		m, err := c.Read(nil)
		if err != nil {
			_, again := c.Read(nil)
			require.Equal(t, err, again)
			return parts, err
		}
		require.Equal(t, conn.Text, m.Type)
		require.NotEmpty(t, m.Data)
		parts = append(parts, string(m.Data))
	}
}

func TestAFrameIsCutIntoItsMessages(t *testing.T) {
	for name, c := range map[string]struct {
		f      bufio.SplitFunc
		frames []string
		want   []string
	}{
		"lines":          {bufio.ScanLines, []string{"{\"a\":1}\n{\"b\":2}\n", "\n\n", "", "one\r\n\r\ntwo"}, []string{`{"a":1}`, `{"b":2}`, "one", "two"}},
		"records":        {conn.ScanRecords, []string{"{}\x1e", "{\"type\":6}\x1e{\"type\":1}\x1e", "4a\x1e2"}, []string{"{}", `{"type":6}`, `{"type":1}`, "4a", "2"}},
		"arrays":         {conn.ScanArray, []string{`[{"a":[1,2]}, "]\",", null]`, "[]", "[ ]", ` {"single":1} `, "[[1],[2]]"}, []string{`{"a":[1,2]}`, `"]\","`, "null", `{"single":1}`, "[1]", "[2]"}},
		"the last token": {func(d []byte, _ bool) (int, []byte, error) { return 1, d[:1], bufio.ErrFinalToken }, []string{"abc", "def"}, []string{"a", "d"}},
	} {
		got, err := splitOf(t, conn.Split{Func: c.f}, c.frames...)
		require.ErrorIs(t, err, io.EOF, name)
		require.Equal(t, c.want, got, name)
	}
}

// A wrong part ends the connection, after the parts before it were read.
func TestAFrameThatCannotBeCutIsAProtocolError(t *testing.T) {
	for name, c := range map[string]struct {
		s     conn.Split
		frame string
		want  string
	}{
		"too many":        {conn.Split{Func: bufio.ScanLines, Parts: 2}, "1\n2\n3\n", "more than 2 messages in a frame"},
		"too many, empty": {conn.Split{Func: bufio.ScanLines, Parts: 3}, "1\n2\n" + strings.Repeat("\n", 1000), "more than 3 messages in a frame"},
		"an open array":   {conn.Split{Func: conn.ScanArray}, "[1,2,[3]", "a JSON array without an end"},
		"a comma":         {conn.Split{Func: conn.ScanArray}, "[1,2,]", "a comma too many"},
		"data behind":     {conn.Split{Func: conn.ScanArray}, "[1,2,3]4", "data behind the end"},
		"a brace":         {conn.Split{Func: conn.ScanArray}, "[1,2,}]", "a brace too many"},
		"no advance": {conn.Split{Func: func(d []byte, _ bool) (int, []byte, error) {
			if d[0] == '!' {
				return 0, nil, nil
			}
			return 1, d[:1], nil
		}}, "12!", "a frame that ends inside a message"},
		"too far": {conn.Split{Func: func(d []byte, _ bool) (int, []byte, error) {
			if d[0] == '!' {
				return 2, nil, nil
			}
			return 1, d[:1], nil
		}}, "12!", "has advanced by 2 of 1 bytes"},
	} {
		got, err := splitOf(t, c.s, c.frame, "never")
		require.ErrorContains(t, err, c.want, name)
		_, protocol := errors.AsType[*conn.ProtocolError](err)
		require.True(t, protocol, name)
		require.Equal(t, []string{"1", "2"}, got, name)
	}
}

func TestAllPartsOfTheLimitAreRead(t *testing.T) {
	got, err := splitOf(t, conn.Split{Func: bufio.ScanLines, Parts: 3}, "1\n2\n3\n", "4\n5\n6")
	require.ErrorIs(t, err, io.EOF)
	require.Len(t, got, 6)
}

func TestBadSplits(t *testing.T) {
	for want, s := range map[string]conn.Split{
		"conn: Split.Func is missing":                                                    {},
		"conn: Split.Parts is -1: want a number, or 0 for 4096":                          {Func: bufio.ScanLines, Parts: -1},
		"conn: Split.Parts is without effect, because Split.Func is nil: nothing is cut": {Parts: 1},
	} {
		_, err := conn.NewSplit(conntest.NewFake(nil), s)
		require.EqualError(t, err, want)
	}
}

// A Split has the optional interfaces of the connection below it, and no others.
func TestASplitHidesNoAbility(t *testing.T) {
	for _, o := range []conntest.FakeOptions{{}, {Pings: true}, {Transport: true}, {Pings: true, Transport: true}} {
		below := conntest.NewFake(&o).Conn()
		c, err := conn.NewSplit(below, conn.Split{Func: bufio.ScanLines})
		require.NoError(t, err)
		_, pings := c.(conn.Pinger)
		_, transport := c.(conn.Transport)
		require.Equal(t, o, conntest.FakeOptions{Pings: pings, Transport: transport})
		require.Equal(t, below, c.(interface{ Unwrap() conn.Conn }).Unwrap())
		c.CloseNow()
	}
}

func TestAClosedSplitReturnsNoMorePartsOfItsFrame(t *testing.T) {
	for _, end := range []func(conn.Conn) error{conn.Conn.CloseNow, func(c conn.Conn) error { return c.Close(t.Context(), 1000, "") }} {
		fake := conntest.NewFake(nil)
		fake.Deliver(conn.TextMessage("1\n2"))
		c, err := conn.NewSplit(fake, conn.Split{Func: bufio.ScanLines})
		require.NoError(t, err)
		_, err = c.Read(nil)
		require.NoError(t, err)
		_ = end(c)
		_, err = c.Read(nil)
		require.ErrorIs(t, err, net.ErrClosed)
	}
}

// oneFrame is a connection on which the same frame comes again and again, in the same memory.
type oneFrame struct {
	conn.Conn
	frame []byte
}

func (c *oneFrame) Read([]byte) (conn.Message, error) { return conn.BinaryMessage(c.frame), nil }

// The parts lie in the frame, and none has capacity beyond its end.
func TestAPartIsNotCopied(t *testing.T) {
	below := &oneFrame{frame: bytes.Repeat([]byte("0123456789\n"), 50)}
	c, err := conn.NewSplit(below, conn.Split{Func: bufio.ScanLines})
	require.NoError(t, err)
	for i := range 50 {
		m, err := c.Read(make([]byte, 100))
		require.NoError(t, err)
		require.Same(t, &below.frame[11*i], &m.Data[0])
		require.Equal(t, 10, cap(m.Data))
	}
	if !conn.RaceEnabled() {
		require.Zero(t, testing.AllocsPerRun(500, func() { _, _ = c.Read(nil) }))
	}
}

// A frame of a real WebSocket is read into memory of its exact size, once.
func TestAFrameIsReadIntoMemoryOfItsSize(t *testing.T) {
	frame := bytes.Repeat([]byte("0123456789\n"), 1000)
	v := newWSServer(t, func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		_ = c.Write(ctx, websocket.MessageText, frame)
		<-ctx.Done()
	})
	ws, _ := v.dial(t, nil, nil)
	c, err := conn.NewSplit(ws, conn.Split{Func: func(d []byte, _ bool) (int, []byte, error) {
		require.LessOrEqual(t, cap(d), len(frame))
		return bufio.ScanLines(d, true)
	}})
	require.NoError(t, err)
	for range 1000 {
		m, err := c.(conn.Transport).ReadBuffer(func(int) []byte { t.Error("a buffer for a part"); return nil })
		require.NoError(t, err)
		require.Equal(t, "0123456789", string(m.Data))
	}
}

// FuzzSplit compares the parts with those of other splitters, whatever the frame is.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{"", "a\nb\r\n\n", "a\x1eb\x1e", `[{"a":[1,"]"]},"\\\"",3]`, "[", "[]", `[1,,2]`, ",1]", "[[[[", "[1}", ` [ 1 , 2 ] `, `["\`} {
		f.Add(s, uint16(10))
	}
	f.Fuzz(func(t *testing.T, frame string, limit uint16) {
		parts := int(limit)%50 + 1
		check := func(fn bufio.SplitFunc, want []string) {
			got, err := splitOf(t, conn.Split{Func: fn, Parts: 1 << 20}, frame)
			require.ErrorIs(t, err, io.EOF)
			require.Equal(t, want, got)
			few, err := splitOf(t, conn.Split{Func: fn, Parts: parts}, frame)
			require.LessOrEqual(t, len(few), parts)
			require.True(t, slices.Equal(got[:len(few)], few))
			if len(few) < len(got) {
				require.ErrorContains(t, err, "messages in a frame")
			}
		}
		var lines, records, elements []string
		for line := range strings.SplitSeq(frame, "\n") {
			if line = strings.TrimSuffix(line, "\r"); line != "" {
				lines = append(lines, line)
			}
		}
		check(bufio.ScanLines, lines)
		for record := range strings.SplitSeq(frame, "\x1e") {
			if record != "" {
				records = append(records, record)
			}
		}
		check(conn.ScanRecords, records)
		var raw []json.RawMessage
		if json.Unmarshal([]byte(frame), &raw) == nil && raw != nil {
			for _, r := range raw {
				elements = append(elements, string(r))
			}
			check(conn.ScanArray, elements)
			return
		}
		got, _ := splitOf(t, conn.Split{Func: conn.ScanArray}, frame) // ends, without a panic
		for _, part := range got {
			require.Contains(t, frame, part)
		}
	})
}
