package reconnect_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
)

// lines returns what a logger wrote, without its times.
func lines(b *bytes.Buffer) []string {
	return strings.Split(strings.TrimSpace(b.String()), "\n")
}

// logger writes to b whatever its level is.
func logger(b *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func TestLogWritesALineForEachEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var b bytes.Buffer
		s.fake = alive
		o := run(every(time.Second))
		o.Name, o.Run.Gate, o.Run.Host, o.Run.Trace = "feed", &gate{}, "h", reconnect.Log(logger(&b))
		c := s.open(&o)
		s.wantDial().refuse(errLost)
		peer := s.wantDial().accept()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		peer.Fail(errLost)
		synctest.Wait()
		quit(c)
		require.Equal(t, []string{
			`level=DEBUG msg="gate passed" name=feed host=h took=1s`,
			`level=DEBUG msg=dialed name=feed try=1 took=0s cause=lost`,
			`level=INFO msg="waiting to redial" name=feed try=2 wait=1s retry_after=0s verdict=retry cause=lost`,
			`level=DEBUG msg="gate passed" name=feed host=h took=1s`,
			`level=DEBUG msg=dialed name=feed try=2 took=0s`,
			`level=INFO msg="session ready" name=feed session=1 downtime=3s`,
			`level=DEBUG msg=probed name=feed session=1 took=0s`,
			`level=INFO msg="session ended" name=feed session=1 uptime=10s ready=10s cause="read: lost"`,
			`level=INFO msg="waiting to redial" name=feed try=1 wait=1s retry_after=0s verdict=retry cause="read: lost"`,
			`level=INFO msg=ended name=feed cause="use of closed network connection"`,
		}, lines(&b))
	})
}

func TestLogWarnsOfWhatIsSlowOrOverdue(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var b bytes.Buffer
		s.fake = alive
		c := s.open(&reconnect.Options{
			OnMessage: func(context.Context, reconnect.Message) { time.Sleep(time.Minute) },
			Run:       reconnect.RunOptions{Trace: reconnect.Log(logger(&b))},
		})
		s.wantDial().accept().Deliver(text("x"))
		time.Sleep(50 * time.Second)
		quit(c)
		require.Equal(t, []string{
			`level=DEBUG msg=dialed try=1 took=0s`,
			`level=INFO msg="session ready" session=1 downtime=0s`,
			`level=WARN msg="OnMessage is slow: the peer is not read" session=1 since=10s`,
			`level=WARN msg="function should have returned" what=OnMessage since=5s`,
		}, lines(&b)[:4])
	})
	inBubble(t, func(t *testing.T, s *scene) {
		var b bytes.Buffer
		s.fake = alive
		c := s.open(&reconnect.Options{Inbox: reconnect.Inbox{Messages: 1}, Run: reconnect.RunOptions{Trace: reconnect.Log(logger(&b))}})
		deliver(s.wantDial().accept(), 1, 3)
		time.Sleep(time.Minute)
		quit(c)
		require.Contains(t, lines(&b), `level=WARN msg="nobody reads, and the inbox is full" what=reader since=30s`)
	})
}
