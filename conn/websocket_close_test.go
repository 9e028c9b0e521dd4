package conn

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// closing calls Close in the background.
func (l *link) closing(ctx context.Context) (wait func() error) {
	return background(func() error { return l.Close(ctx, 1000, "bye") })
}

func TestCloseSendsCodeAndReasonAndWaitsForTheAnswer(t *testing.T) {
	for _, reads := range []bool{false, true} {
		l := plain(t, nil)
		read := func() error { return net.ErrClosed }
		if reads {
			read = l.reading()
		}
		wait := background(func() error { return l.Close(t.Context(), 4001, strings.Repeat("é", 100)) })
		_, _, err := l.peer.Read(t.Context())
		var got websocket.CloseError
		require.ErrorAs(t, err, &got)
		require.Equal(t, websocket.CloseError{Code: 4001, Reason: strings.Repeat("é", 61)}, got)
		require.NoError(t, wait())
		require.ErrorIs(t, read(), net.ErrClosed)
		_, err = l.Read(nil)
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, l.Close(t.Context(), 1000, ""), net.ErrClosed)
	}
}

func TestAnswerWithAnotherCodeIsAnAnswer(t *testing.T) {
	l := plain(t, nil)
	wait := l.closing(t.Context())
	l.send(frame(fin|close8, "\x03\xe9"))
	require.NoError(t, wait())
}

// Promise 4, also while other goroutines read and write.
func TestCloseOnASilentPeerEndsWithItsContext(t *testing.T) {
	cause := errors.New("enough")
	for name, busy := range map[string]func(l *link){
		"nobody reads": func(*link) {},
		"reading":      func(l *link) { l.reading() },
		"in a message": func(l *link) { l.reading(); l.send(frame(text, "a")) },
		"writing":      func(l *link) { l.client().fill(0); l.writing(1) },
		"full":         func(l *link) { l.client().fill(0) },
		"pinging":      func(l *link) { background(func() error { return l.Ping(context.Background()) }) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := plain(t, nil)
				busy(l)
				synctest.Wait()
				ctx, cancel := context.WithTimeoutCause(t.Context(), 2*second, cause)
				defer cancel()
				takes(t, 2*second, func() { require.ErrorIs(t, l.Close(ctx, 1000, ""), cause) })
			})
		})
	}
}

// The length overflows an int as soon as that of the header is added.
func TestCloseEndsAlthoughAFrameClaimsToBeHuge(t *testing.T) {
	for _, length := range []uint64{math.MaxInt64, math.MaxInt64 - 9, math.MaxUint32, 1 << 31} {
		for _, mask := range []string{"", "keys"} {
			synctest.Test(t, func(t *testing.T) {
				l := plain(t, nil)
				wait := l.closing(t.Context())
				synctest.Wait()
				size := byte(127)
				if mask != "" {
					size |= 0x80
				}
				l.send(string(binary.BigEndian.AppendUint64([]byte{fin | bin, size}, length)) + mask + "and so on")
				require.EqualError(t, wait(), "close: no close frame in answer within 5s")
			})
		}
	}
}

func TestCloseWithoutAnAnswerGivesUpAfterFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		takes(t, 5*second, func() {
			err := l.Close(t.Context(), 1000, "")
			require.EqualError(t, err, "close: no close frame in answer within 5s")
			require.NotErrorIs(t, err, context.DeadlineExceeded)
		})
	})
}

func TestCloseAnsweredByAnEndlessFrameEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		flood := background(func() (err error) {
			_, err = l.raw.Write([]byte("\x82\x7f\x7f\x00\x00\x00\x00\x00\x00\x00"))
			for err == nil {
				time.Sleep(second)
				_, err = l.raw.Write([]byte("x"))
			}
			return err
		})
		time.Sleep(second / 2) // the peer does nothing at an instant of ours
		takes(t, closeLimit, func() {
			err := l.Close(context.Background(), 1000, "")
			require.EqualError(t, err, "close: no close frame in answer within 5s")
		})
		require.Error(t, flood())
	})
}

func TestCloseTellsThatThePeerHungUp(t *testing.T) {
	l := plain(t, nil)
	wait := l.closing(t.Context())
	_, _ = l.raw.Read(make([]byte, 100)) // the close frame
	l.raw.Close()
	require.EqualError(t, wait(), "close: the peer hung up without a close frame: EOF")
}

func TestCloseWithAContextThatIsDoneIsCloseNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		takes(t, 0, func() { require.ErrorIs(t, l.Close(ctx, 1000, ""), context.Canceled) })
		require.True(t, l.wire.cut.Load())
	})
}

func TestCloseWithABadCodeCuts(t *testing.T) {
	for _, code := range []int{-1, 0, 999, 1004, 1005, 1006, 1015, 2999, 5000} {
		l := plain(t, nil)
		require.ErrorContains(t, l.Close(t.Context(), code, ""), "cannot be sent")
		require.True(t, l.wire.cut.Load())
	}
}

// RFC 6455, section 7.4: the first and the last code of each range.
func TestStartCloseSendsAllowedCodes(t *testing.T) {
	for _, code := range []int{1000, 1003, 1007, 1014, 3000, 4999} {
		l := plain(t, nil)
		require.NoError(t, l.StartClose(code, ""))
		require.Equal(t, code, closeCode(l.raw.in.data))
	}
}

func TestCloseAfterTheEndReturnsItsCause(t *testing.T) {
	l := plain(t, nil)
	l.raw.Close()
	_, err := l.Read(nil)
	require.Error(t, err)
	require.EqualError(t, l.Close(t.Context(), 1000, ""), "close: the peer hung up without a close frame: EOF")
}

// Promise 4: coder/websocket's CloseNow cuts nothing once a Close has begun.
func TestCloseNowCutsACloseThatHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		wait := l.closing(t.Context())
		read := l.reading()
		sleep(t, second)
		takes(t, 0, func() {
			require.NoError(t, l.CloseNow())
			require.ErrorIs(t, wait(), net.ErrClosed)
			require.ErrorIs(t, read(), net.ErrClosed)
		})
	})
}

// Promise 8.
func TestNoTimerIsLeft(t *testing.T) {
	ends := map[string]func(l *link){
		"CloseNow": func(l *link) { l.CloseNow() },
		"Close": func(l *link) {
			wait := l.closing(t.Context())
			l.send(frame(fin|close8, "\x03\xe8"))
			require.NoError(t, wait())
		},
	}
	for name, end := range ends {
		l := plain(t, nil)
		require.NoError(t, l.Write(Message{Text, nil}))
		require.True(t, l.wire.writing.isArmed(), name)
		end(l)
		require.False(t, l.wire.writing.isArmed(), name)
	}
}

// Promise 4: CloseNow does not wait for the network, and every call ends.
func TestCloseNowUnblocksEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		l.client().fill(0)
		calls := []func() error{
			l.reading(), l.writing(1 << 20), l.writing(1), l.closing(t.Context()), l.closing(t.Context()),
			background(func() error { return l.Ping(context.Background()) }),
		}
		synctest.Wait()
		takes(t, 0, func() {
			for range 3 {
				require.NoError(t, l.CloseNow())
			}
			for _, wait := range calls {
				require.ErrorIs(t, wait(), net.ErrClosed)
			}
		})
	})
}

// Promise 8, at any moment; the race detector and goleak check it.
func TestEverythingAtOnceEnds(t *testing.T) {
	for range 200 {
		l := plain(t, nil)
		var calls sync.WaitGroup
		calls.Go(func() { _, _ = l.Read(nil); _, _ = l.Read(nil) })
		calls.Go(func() { _ = l.Write(Message{Text, make([]byte, 5000)}) })
		calls.Go(func() { _ = l.Ping(t.Context()) })
		calls.Go(func() { _ = l.Close(t.Context(), 1000, "") })
		calls.Go(func() { _ = l.CloseNow() })
		calls.Go(l.wire.Cut)
		calls.Go(func() { l.send(frame(text, "half"), frame(fin|close8, "")); l.raw.Close() })
		calls.Wait()
	}
}

func TestCauseOfACutIsTheFirst(t *testing.T) {
	l := plain(t, nil)
	first := errors.New("first")
	require.Equal(t, first, l.wire.end(first))
	require.NoError(t, l.CloseNow())
	_, err := l.Read(nil)
	require.ErrorIs(t, err, first)
	require.NotErrorIs(t, err, net.ErrClosed)
}

func TestCutFromOutsideIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		read := l.reading()
		synctest.Wait()
		takes(t, 0, func() {
			l.wire.Cut()
			require.ErrorIs(t, read(), net.ErrClosed)
		})
	})
}

// Close comes between the peer's close frame and our answer to that. Its own frame, which is under way, is the answer.
func TestTheEndOfReadDoesNotCutTheFrameOfAClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		l.client().fill(0)
		var bye func() error
		l.BeforeBlock(func() {
			if l.wire.goodbye.Load() != nil && bye == nil {
				bye = l.closing(t.Context())
				time.Sleep(time.Nanosecond) // until its frame waits
				require.True(t, l.wire.closeSent.Load())
			}
		})
		read := l.reading()
		l.send(frame(fin|close8, "\x03\xe8"))
		sleep(t, second)
		l.client().fill(1 << 30)
		require.Error(t, read())
		require.NoError(t, bye())
		require.Equal(t, []byte{fin | close8}, sentFrames(l.raw.in.data))
	})
}

// The answer is larger than the small buffer: masked, and with a length of 8 bytes, which Close lets pass.
func TestAnAnswerThatBreaksTheRulesIsAnAnswer(t *testing.T) {
	l := plain(t, nil)
	wait := l.closing(t.Context())
	payload := []byte("\x03\xe8" + strings.Repeat("x", 123))
	mask(payload, []byte("keys"))
	l.send("\x88\xff"+string(binary.BigEndian.AppendUint64(nil, 125)), "keys"+string(payload))
	require.NoError(t, wait())
}

func TestFrameOfUnknownKindEndsClose(t *testing.T) {
	for first, want := range map[byte]error{
		fin | 0x3: errOpcode, fin | 0x7: errOpcode, fin | 0xB: errOpcode, fin | 0xF: errOpcode, close8: errControlFrame,
	} {
		synctest.Test(t, func(t *testing.T) {
			l := plain(t, nil)
			takes(t, 0, func() {
				wait := l.closing(t.Context())
				l.send(frame(first, "\x03\xe8"))
				require.Equal(t, want, innermost(wait()), "%#x", first)
			})
		})
	}
}

// What the peer sends before its own close frame can be read after ours.
func TestStartCloseLetsReadGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		l.send(frame(fin|text, "before"))
		takes(t, 0, func() { require.NoError(t, l.StartClose(4001, "bye")) })
		require.ErrorIs(t, l.Write(TextMessage("x")), net.ErrClosed)
		require.ErrorIs(t, l.Ping(t.Context()), net.ErrClosed)
		l.send(frame(fin|ping, "p"), frame(text, "af"), frame(fin, "ter"), frame(fin|close8, "\x0f\xa1done"))
		for _, want := range []string{"before", "after"} {
			m, err := l.Read(nil)
			require.NoError(t, err)
			require.Equal(t, want, string(m.Data))
		}
		_, err := l.Read(nil)
		require.Equal(t, &CloseError{Code: 4001, Reason: "done"}, innermost(err))
		require.NoError(t, l.CloseNow())
		h, size := sentFrame(l.raw.in.data)
		require.EqualValues(t, fin|close8, h)
		require.Len(t, l.raw.in.data, size, "nothing follows the close frame, not even the answer to the ping")
	})
}

func TestStartCloseWaitsForMessageInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		l.client().fill(fragment)
		write := l.writing(3 * fragment)
		synctest.Wait()
		waiting := background(func() error { return l.Write(TextMessage("waits for its turn")) })
		synctest.Wait()
		start := background(func() error { return l.StartClose(1000, "") })
		synctest.Wait()
		l.client().fill(1 << 30)
		require.NoError(t, write())
		require.ErrorIs(t, waiting(), net.ErrClosed)
		require.NoError(t, start())
		l.peer.SetReadLimit(-1)
		_, data, err := l.peer.Read(t.Context())
		require.NoError(t, err)
		require.Len(t, data, 3*fragment)
		_, _, err = l.peer.Read(t.Context())
		require.Equal(t, websocket.StatusNormalClosure, websocket.CloseStatus(err))
	})
}

func TestStartCloseAndCloseSendOneFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		require.NoError(t, l.StartClose(4001, ""))
		require.NoError(t, l.StartClose(4002, ""))
		wait := l.closing(t.Context())
		l.send(goodbye)
		require.NoError(t, wait())
		h, size := sentFrame(l.raw.in.data)
		require.EqualValues(t, fin|close8, h)
		require.Len(t, l.raw.in.data, size)
	})
}

func TestStartCloseThatCannotBeSentCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		require.ErrorContains(t, l.StartClose(1005, ""), "close: code 1005 cannot be sent")
		require.ErrorIs(t, l.Write(TextMessage("x")), net.ErrClosed)

		l = plain(t, nil)
		l.client().fill(0)
		takes(t, closeLimit, func() { require.ErrorIs(t, l.StartClose(1000, ""), errControl) })
		_, err := l.Read(nil)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// The answer can come, and the reader can close the connection, before StartClose returns.
func TestStartCloseThatIsAnsweredIsNoError(t *testing.T) {
	l := plain(t, nil)
	l.send(frame(fin|close8, "\x03\xe8"))
	_, err := l.Read(nil)
	require.Equal(t, &CloseError{Code: 1000}, innermost(err))
	require.NoError(t, l.CloseNow())
	require.NoError(t, l.StartClose(1000, ""))
}

// The peer has said why it refuses a message, and reads no more of it.
func TestRefusedWriteEndsSoonWithTheCloseFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		l.client().fill(fragment)
		write := l.writing(3 * fragment)
		read := l.reading()
		synctest.Wait()
		l.send(frame(fin|close8, "\x03\xf1too big")) // 1009
		want := &CloseError{Code: codeTooBig, Reason: "too big"}
		takes(t, lastWords, func() {
			err := write()
			require.Equal(t, want, innermost(err))
			require.NotErrorIs(t, err, ErrNotWritten)
		})
		require.Equal(t, want, innermost(read()))
	})
}

// A close frame cannot go out inside another frame. It waits while the peer takes that.
func TestCloseFrameWaitsForFrameThatThePeerTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		l.client().fill(fragment / 4)
		write := l.writing(fragment)
		synctest.Wait()
		read := l.reading()
		l.send(goodbye)
		sleep(t, lastWords-second/10)
		l.client().fill(fragment)
		require.NoError(t, write())
		require.ErrorAs(t, read(), new(*CloseError))
		l.peer.SetReadLimit(-1)
		_, data, err := l.peer.Read(t.Context())
		require.NoError(t, err)
		require.Len(t, data, fragment)
		_, _, err = l.peer.Read(t.Context())
		require.Equal(t, websocket.StatusNormalClosure, websocket.CloseStatus(err))
	})
}
