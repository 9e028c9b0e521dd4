package conntest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
)

// serve runs f with a client of a server that has this handler.
func serve(t *testing.T, h conntest.Handler, f func(t *testing.T, c *websocket.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		s := conntest.NewServer(&n, addr, h)
		defer s.Close()
		f(t, mustDial(t, &n))
	})
}

func TestDiscardAnswersPingsAndNothingElse(t *testing.T) {
	serve(t, conntest.Discard, func(t *testing.T, c *websocket.Conn) {
		ctx := c.CloseRead(t.Context())
		require.NoError(t, c.Write(ctx, websocket.MessageText, []byte("x")))
		require.NoError(t, c.Ping(ctx))
	})
}

func TestNeverReadAnswersNoPings(t *testing.T) {
	serve(t, conntest.NeverRead, func(t *testing.T, c *websocket.Conn) {
		ctx, cancel := context.WithTimeout(c.CloseRead(t.Context()), time.Minute)
		defer cancel()
		require.ErrorIs(t, c.Ping(ctx), context.DeadlineExceeded)
	})
}

func TestCloseWithClosesRightAfterAccepting(t *testing.T) {
	serve(t, conntest.CloseWith(1013, "full"), func(t *testing.T, c *websocket.Conn) {
		_, _, err := c.Read(t.Context())
		var closed websocket.CloseError
		require.ErrorAs(t, err, &closed)
		require.Equal(t, websocket.CloseError{Code: 1013, Reason: "full"}, closed)
	})
}

func TestFramesAreSentAsTheyAre(t *testing.T) {
	for name, test := range map[string]struct {
		frame conntest.Frame
		want  string
	}{
		"reserved bits":     {conntest.Frame{Head: conntest.Fin | 0x20 | conntest.TextFrame}, "unexpected rsv bits"},
		"unknown opcode":    {conntest.Frame{Head: conntest.Fin | 0x3}, "unknown opcode"},
		"negative length":   {conntest.Frame{Head: conntest.Fin | 0x2, Length: 1 << 63}, "negative payload length"},
		"oversize":          {conntest.Frame{Head: conntest.Fin | 0x2, Payload: make([]byte, 40_000)}, "read limited at"},
		"bad continuation":  {conntest.Frame{Head: conntest.Fin}, "continuation frame"},
		"close":             {conntest.Frame{Head: conntest.Fin | 0x8, Payload: []byte("\x0f\xa0bye")}, `"bye"`},
		"fragmented, alone": {conntest.Frame{Head: conntest.TextFrame, Payload: []byte("half")}, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, conntest.Frames(test.frame), func(t *testing.T, c *websocket.Conn) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, _, err := c.Read(ctx)
				require.ErrorContains(t, err, test.want)
			})
		})
	}
}

func TestFrameTakesTheShortestLength(t *testing.T) {
	for length, want := range map[uint64][]byte{
		5:       {0x82, 5},
		125:     {0x82, 125},
		126:     {0x82, 126, 0, 126},
		0xFFFF:  {0x82, 126, 0xFF, 0xFF},
		0x10000: {0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0},
	} {
		require.Equal(t, want, conntest.Frame{Head: 0x82, Length: length}.Bytes())
	}
	masked := conntest.Frame{Head: 0x81, Payload: []byte("hi"), Mask: true}
	require.Equal(t, []byte{0x81, 0x82, 0, 0, 0, 0, 'h', 'i'}, masked.Bytes())
}
