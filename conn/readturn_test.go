package conn

import (
	"bufio"
	"context"
	"net"
	"testing"
	"testing/synctest"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// A reader takes an error of Read for the end and cuts, as package reconnect does. So a
// Read returns none before Close has got its answer, whatever comes meanwhile.
func TestAReaderThatCutsDoesNotSpoilTheGoodbye(t *testing.T) {
	for name, meanwhile := range map[string]string{
		"nothing": "", "a ping": frame(fin|ping, "p"), "messages": tail + tail + tail, "half a message": frame(text, "half"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := plain(t, nil)
				reader := background(func() (err error) {
					for err == nil {
						_, err = l.Read(nil)
					}
					l.CloseNow()
					return err
				})
				synctest.Wait()
				wait := l.closing(t.Context())
				sleep(t, second)
				l.send(meanwhile)
				sleep(t, second)
				l.send(frame(fin|close8, "\x03\xe8"))
				takes(t, 0, func() { require.NoError(t, wait()) })
				require.ErrorIs(t, reader(), net.ErrClosed)
				require.Equal(t, 1000, closeCode(l.raw.in.data))
			})
		})
	}
}

// The Read that has the turn has not yet given it to Close.
func TestSecondReaderAwaitsCloseThatHasNoTurnYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turn readTurn
		require.True(t, turn.begin())
		turn.want()
		returned := false
		wait := background(func() error {
			turn.awaitClose(nil)
			returned = true
			return nil
		})
		synctest.Wait()
		require.False(t, returned)
		turn.end()
		turn.done()
		require.NoError(t, wait())
	})
}

func TestReadDuringCloseReturnsWhenThatHasEnded(t *testing.T) {
	for name, cut := range map[string]bool{"at its limit": false, "by CloseNow": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := plain(t, nil)
				wait := l.closing(context.Background())
				sleep(t, second)
				read := l.reading()
				sleep(t, second)
				if cut {
					takes(t, 0, func() { require.NoError(t, l.CloseNow()) })
				}
				rest := closeLimit - 2*second
				if cut {
					rest = 0
				}
				takes(t, rest, func() {
					require.Error(t, wait())
					require.ErrorIs(t, read(), net.ErrClosed)
				})
			})
		})
	}
}

// A reader that collects messages may have some when Close comes between two Reads.
func TestBeforeBlockIsCalledBeforeAWaitForClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		waits := 0
		require.True(t, l.BeforeBlock(func() { waits++ }))
		l.send(tail + tail)
		_, err := l.Read(nil)
		require.NoError(t, err)
		require.Equal(t, 1, waits)
		wait := l.closing(t.Context())
		synctest.Wait()
		require.Equal(t, 1, waits, "Close reads")
		read := l.reading()
		synctest.Wait()
		require.Equal(t, 2, waits)
		l.send(frame(fin|close8, "\x03\xe8"))
		require.NoError(t, wait())
		require.ErrorIs(t, read(), net.ErrClosed)
	})
}

// The peer says goodbye in the same moment.
func TestBothSidesMayCloseAtOnce(t *testing.T) {
	for range 100 {
		l := plain(t, nil)
		read := l.reading()
		peer := background(func() error { return l.peer.Close(1001, "") })
		_ = l.Close(t.Context(), 1000, "")
		require.Error(t, read())
		if err := peer(); err != nil { // else the peer got an answer to its own frame
			require.Equal(t, websocket.StatusNormalClosure, websocket.CloseStatus(err), "%v", err)
		}
	}
}

func TestASecondReaderOfAWebSocketIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		read := l.reading()
		synctest.Wait()
		_, err := l.Read(nil)
		require.EqualError(t, err, "read: another Read is under way")
		l.send(tail)
		require.NoError(t, read())
	})
}

func (l *link) bye() error { return l.Close(context.Background(), 1000, "bye") }

// Close comes while Read answers the peer's close frame.
func TestAGoodbyeThatIsBeingReadAnswersClose(t *testing.T) {
	l := plain(t, nil)
	out, turn := &l.wire.stream.out, &l.wire.reads
	state := func(want uint32) func() bool { return func() bool { return turn.state.Load() == want } }
	out.mu.Lock() // its answer waits
	l.send(goodbye)
	read := l.reading()
	require.Eventually(t, func() bool { return l.wire.goodbye.Load() != nil }, 60*second, second/1000)
	bye := background(l.bye)
	require.Eventually(t, state(wanted), 60*second, second/1000)
	out.mu.Unlock()
	require.NoError(t, bye())
	require.ErrorIs(t, read(), net.ErrClosed)
}

func TestCloseMayComeWhileAPingIsAnswered(t *testing.T) {
	for range 300 {
		l := plain(t, nil)
		l.send(frame(fin|ping, ""), tail, goodbye)
		bye := background(l.bye)
		for err := error(nil); err == nil; {
			_, err = l.Read(nil)
		}
		_ = bye()
	}
}

// The program recovers from a panic of its function, as the server of net/http does.
func TestCloseAfterPanicInRead(t *testing.T) {
	for name, c := range map[string]func(t *testing.T) Conn{
		"ReadBuffer": func(t *testing.T) Conn {
			l := plain(t, nil)
			l.send(frame(fin|text, "hello"))
			require.Panics(t, func() { _, _ = l.ReadBuffer(func(int) []byte { panic("buffer") }) })
			return l
		},
		"ReadBuffer in a burst": func(t *testing.T) Conn {
			l := plain(t, nil)
			l.send(frame(fin|text, "hello"), frame(fin|text, "hello"))
			_, err := l.Read(nil)
			require.NoError(t, err)
			require.Panics(t, func() { _, _ = l.ReadBuffer(func(int) []byte { panic("buffer") }) })
			return l
		},
		"Framer": func(t *testing.T) Conn {
			a, b := net.Pipe()
			t.Cleanup(func() { b.Close() })
			c, err := NewFramed(a, panickingFramer{}, nil)
			require.NoError(t, err)
			go b.Write([]byte("x\n")) // ends with b
			require.Panics(t, func() { _, _ = c.Read(nil) })
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := c(t)
				_, err := c.Read(nil)
				require.ErrorIs(t, err, errAbandoned)
				takes(t, 0, func() { require.ErrorIs(t, c.Close(t.Context(), 1000, ""), errAbandoned) })
			})
		})
	}
}

// panickingFramer is a Framer whose ReadFrame panics.
type panickingFramer struct{ Lines }

func (panickingFramer) ReadFrame(*bufio.Reader, []byte, int) ([]byte, error) { panic("framer") }
