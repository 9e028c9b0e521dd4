package conn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWakeEndsAReadBetweenTwoMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		assert.False(t, l.Woken())
		for range 2 {
			read := l.reading()
			synctest.Wait()
			l.Wake()
			require.Equal(t, ErrWoken, read())
		}
		assert.True(t, l.Woken())
		l.Wake() // nobody waits
		require.Equal(t, ErrWoken, l.reading()())
		l.send(frame(fin|text, "hello"))
		m, err := l.Read(nil)
		require.NoError(t, err)
		require.Equal(t, "hello", string(m.Data))
	})
}

func TestWakeDoesNotEndAReadInsideAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		whole := frame(fin|text, "hello")
		l.send(whole[:4])
		read := l.reading()
		synctest.Wait()
		l.Wake()
		synctest.Wait()
		l.send(whole[4:])
		require.NoError(t, read())
	})
}

// led is what a ReadWhole has returned.
type led struct {
	data        string
	more, whole bool
}

func (l *link) leading(buf []byte) (wait func() led) {
	return background(func() led {
		m, more, whole := l.ReadWhole(buf)
		return led{string(m.Data), more, whole}
	})
}

func TestWakeEndsAReadWholeAlsoInsideAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		whole := frame(fin|text, strings.Repeat("x", 300))
		for _, part := range []string{"", whole[:1], whole[1:3], whole[3:150], whole[150:200]} {
			l.send(part)
			lead := l.leading(nil)
			synctest.Wait()
			l.Wake()
			require.False(t, lead().whole)
		}
		l.send(whole[200:])
		last := l.leading(nil)()
		if !last.whole { // Wake may end one more wait than it should
			last = l.leading(nil)()
		}
		require.Equal(t, led{data: strings.Repeat("x", 300), whole: true}, last)
	})
}

// ReadWhole consumes nothing of each of these, so that Read gets it.
func TestReadWholeLeavesWhatIsNoPlainFrame(t *testing.T) {
	large := strings.Repeat("x", 70_000)
	for _, c := range []struct {
		name, sent, want string
		broken           error
	}{
		{"a fragment", frame(bin, "hel") + frame(fin, "lo"), "hello", nil},
		{"a ping", frame(fin|ping, "?") + frame(fin|bin, "hello"), "hello", nil},
		{"a pong", frame(fin|pong, "!") + frame(fin|bin, "hello"), "hello", nil},
		{"a large message", string([]byte{fin | bin, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70}) + large, large, nil},
		{"no UTF-8", frame(fin|text, "\xff"), "", new(ProtocolError)},
		{"a reserved bit", frame(fin|rsv1|bin, "hello"), "", new(ProtocolError)},
		{"a masked frame", string([]byte{fin | bin, 0x80 | 1, 0, 0, 0, 0, 1}), "", new(ProtocolError)},
		{"a length with more bytes than it needs", string([]byte{fin | bin, 126, 0, 1, 1}), "", new(ProtocolError)},
		{"too large a message", frame(fin|bin, large[:65_000]), "", new(TooBigError)},
		{"a close frame", frame(fin|close8, "\x03\xf5well"), "", new(CloseError)},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &WebSocketOptions{CheckUTF8: true, Limits: Limits{ReadLimit: 100_000}}
				if strings.HasPrefix(c.name, "too large") {
					o.ReadLimit = 64_999
				}
				l := plain(t, o)
				l.send(c.sent)
				require.False(t, l.leading(make([]byte, 100))().whole)
				m, err := l.Read(nil)
				if c.broken == nil {
					require.NoError(t, err)
					require.True(t, c.want == string(m.Data))
					return
				}
				require.ErrorAs(t, err, &c.broken)
			})
		})
	}
}

// The frame is delivered, unless it is to be checked and is a text.
func TestReadWholeReturnsWhatNeedsNoUTF8(t *testing.T) {
	for kind, check := range map[byte]bool{text: false, bin: true} {
		l := plain(t, &WebSocketOptions{CheckUTF8: check})
		l.send(frame(fin|kind, "\xff") + "\x81")
		require.Equal(t, led{data: "\xff", more: true, whole: true}, l.leading(nil)())
	}
}

func TestReadWholeSeesTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		lead := l.leading(nil)
		synctest.Wait()
		l.raw.Close()
		require.Equal(t, led{}, lead())
		require.ErrorContains(t, l.reading()(), "EOF")
		require.Equal(t, led{}, l.leading(nil)())
	})
}

// Close takes the turn to read from a ReadWhole, as from a Read.
func TestCloseDuringAReadWholeGetsTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		lead := l.leading(nil)
		answered := background(func() error { _, _, err := l.peer.Read(context.Background()); return err })
		synctest.Wait()
		require.NoError(t, l.Close(context.Background(), 1000, ""))
		require.Equal(t, websocket.StatusNormalClosure, websocket.CloseStatus(answered()))
		lead()
	})
}

// A late Wake does not end the wait of Close for the answer.
func TestWakeDoesNotEndAClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		closed := background(func() error { return l.Close(context.Background(), 1000, "") })
		synctest.Wait()
		l.Wake()
		synctest.Wait()
		_, _, err := l.peer.Read(context.Background())
		require.Equal(t, websocket.StatusNormalClosure, websocket.CloseStatus(err))
		require.NoError(t, closed())
	})
}

// The first Wake may come while no call waits. It ends the next wait, and then Woken is true.
func TestAWakeThatComesBeforeTheReadIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		l.Wake()
		require.Equal(t, ErrWoken, l.reading()())
		require.True(t, l.Woken())
	})
}

// over returns a WebSocket over the connection that wrap makes of one in memory.
func over(t *testing.T, wrap func(net.Conn) net.Conn) *link {
	l := &link{wire: new(Wire)}
	ws := l.shakeHands(t, websocket.CompressionDisabled, func(nc net.Conn) net.Conn { return l.wire.Tap(wrap(nc)) }, l.wire.Transport)
	var err error
	l.WebSocket, err = NewWebSocket(ws, l.wire, nil)
	require.NoError(t, err)
	return l
}

// deaf is a connection whose deadlines have no effect.
type deaf struct{ net.Conn }

func (deaf) ReadsOn() bool { return true }

func (deaf) SetReadDeadline(time.Time) error { return nil }

func TestAConnectionWithoutDeadlinesIsNeverWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := over(t, func(nc net.Conn) net.Conn { return deaf{nc} })
		read := l.reading()
		synctest.Wait()
		l.Wake()
		synctest.Wait()
		assert.False(t, l.Woken())
		l.CloseNow()
		require.ErrorIs(t, read(), net.ErrClosed)
	})
}

// tunnel is a connection that does not say whether it reads on after a deadline.
type tunnel struct{ net.Conn }

func (tunnel) SetReadDeadline(time.Time) error { panic("a deadline") }

func TestAConnectionThatMayEndWithADeadlineHasNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := over(t, func(nc net.Conn) net.Conn { return tunnel{nc} })
		read := l.reading()
		synctest.Wait()
		l.Wake()
		l.send(frame(fin|text, "hello"))
		require.NoError(t, read())
		assert.False(t, l.Woken())
	})
}

// While the message waits for its reader, and not for the network, its time limit does not run.
func TestAMessageThatReadWholeHasLeftIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, &WebSocketOptions{Limits: Limits{MessageTimeout: second}})
		whole := frame(fin|text, "hello")
		l.send(whole[:4])
		lead := l.leading(nil)
		synctest.Wait()
		l.Wake()
		require.Equal(t, led{more: true}, lead())
		time.Sleep(10 * second)
		l.send(whole[4:])
		require.NoError(t, l.reading()())
	})
}

// What calls of ReadWhole have waited for the network counts for the time limit of the message.
func TestTimeOfReadWholeInsideMessageCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, &WebSocketOptions{Limits: Limits{MessageTimeout: second}})
		l.send(frame(fin|text, "hello")[:4])
		for range 2 {
			lead := l.leading(nil)
			time.Sleep(2 * second / 5)
			l.Wake()
			require.Equal(t, led{more: true}, lead())
			time.Sleep(10 * second)
		}
		began, slow := time.Now(), new(SlowMessageError)
		require.ErrorAs(t, l.reading()(), &slow)
		require.Equal(t, second/5, time.Since(began))
	})
}

// foreign is a connection with an error of its own for a deadline, as a stream of yamux is.
type foreign struct{ net.Conn }

func (foreign) ReadsOn() bool { return true }

type foreignTimeout struct{}

func (foreignTimeout) Error() string   { return "too late" }
func (foreignTimeout) Timeout() bool   { return true }
func (foreignTimeout) Temporary() bool { return true }

func (c foreign) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("read: %w", foreignTimeout{})
	}
	return n, err
}

func TestWakeEndsAReadWhateverTheErrorOfADeadlineIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := over(t, func(nc net.Conn) net.Conn { return foreign{nc} })
		read := l.reading()
		synctest.Wait()
		l.Wake()
		require.Equal(t, ErrWoken, read())
		l.send(frame(fin|text, "hello"))
		err := l.reading()()
		if err == ErrWoken { // Wake may end one more wait than it should
			err = l.reading()()
		}
		require.NoError(t, err)
	})
}

// hasty is a connection that sets a deadline of a minute at the beginning of each Read.
type hasty struct{ net.Conn }

func (hasty) ReadsOn() bool { return true }

func (c hasty) Read(p []byte) (int, error) {
	c.Conn.SetReadDeadline(time.Time{})
	late := time.AfterFunc(time.Minute, func() { c.Conn.SetReadDeadline(past) })
	defer late.Stop()
	return c.Conn.Read(p)
}

func TestTheDeadlineOfAConnectionItselfIsNoWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := over(t, func(nc net.Conn) net.Conn { return hasty{nc} })
		read := l.reading()
		synctest.Wait()
		l.Wake()
		require.Equal(t, ErrWoken, read())
		l.Wake() // nobody waits
		start := time.Now()
		require.Equal(t, ErrWoken, l.reading()())
		require.Zero(t, time.Since(start))
		require.ErrorIs(t, l.reading()(), os.ErrDeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start))
	})
}

// Random frames come in parts cut at random places, and are read by turns with random wakes. Nothing is lost or torn.
func TestMessagesReadByTurnsAreThoseThatWereSent(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) { readByTurns(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func readByTurns(t *testing.T, random *rand.Rand) {
	l := plain(t, &WebSocketOptions{Limits: Limits{ReadLimit: 1 << 20}})
	var sent []string
	var stream bytes.Buffer
	for i := range 20 {
		payload := fmt.Sprint(i, " ", strings.Repeat("x", []int{0, 5, 120, 400, 5000, 66_000}[random.IntN(6)]))
		switch random.IntN(6) {
		case 0:
			stream.WriteString(frame(fin|ping, "?"))
			fallthrough
		default:
			if len(payload) < 65_536 {
				stream.WriteString(frame(fin|bin, payload))
				break
			}
			fallthrough
		case 1:
			cut := random.IntN(min(len(payload), 60_000))
			stream.WriteString(frame(bin, payload[:cut]) + frame(0, payload[cut:min(cut+60_000, len(payload))]) + frame(fin, payload[min(cut+60_000, len(payload)):]))
		}
		sent = append(sent, payload)
	}
	wrote := background(func() error {
		for stream.Len() > 0 {
			l.send(string(stream.Next(1 + random.IntN([]int{3, 200, 40_000}[random.IntN(3)]))))
			if random.IntN(3) == 0 {
				synctest.Wait()
			}
			if random.IntN(3) == 0 {
				l.Wake()
			}
		}
		return nil
	})
	for i, buf := 0, make([]byte, 2000); i < len(sent); {
		var m Message
		whole, err := false, error(nil)
		if i%5 != 4 {
			m, _, whole = l.ReadWhole(buf[:0])
		}
		if !whole {
			if m, err = l.Read(buf[:0]); err == ErrWoken {
				continue
			}
		}
		require.NoError(t, err)
		require.True(t, sent[i] == string(m.Data), "message %d", i)
		i++
	}
	require.NoError(t, wrote())
}

// For one n the part that comes first fills the small buffer of the stream exactly.
func TestReadWholeGoesOnWhereSoMuchHasComeAsTheStreamHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		whole := frame(fin|bin, strings.Repeat("x", 300))
		for n := 1; n < len(whole); n++ {
			lead := l.leading(make([]byte, 2000))
			synctest.Wait()
			l.send(whole[:n])
			synctest.Wait()
			l.send(whole[n:])
			require.Equal(t, led{data: strings.Repeat("x", 300), whole: true}, lead(), "%d bytes came first", n)
		}
	})
}

func TestManyWakesDoNotEndAReadInsideAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		whole := frame(fin|text, "hello")
		l.send(whole[:4])
		read := l.reading()
		for range 200 {
			synctest.Wait()
			l.Wake()
		}
		synctest.Wait()
		l.send(whole[4:])
		require.NoError(t, read())
	})
}
