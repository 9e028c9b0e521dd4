package watch

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// alive is the data of a KeepAlive message.
const alive = "alive"

// keeps is the option of most scenes.
var keeps = &KeepAliveOptions{Every: 8 * time.Second, Message: func() conn.Message { return conn.Message{Data: []byte(alive)} }}

func TestKeepAliveWritesWhenNothingElseWasWritten(t *testing.T) {
	other := func(w *world) { w.link.WriteFirst(context.Background(), conn.Message{}) }
	play(t, []scene{
		{name: "nothing", keepAlive: keeps, until: "25s", want: "8s wrote, 16s wrote, 24s wrote"},
		{name: "another", keepAlive: keeps, script: []step{{"5s", other}, {"12s", other}}, until: "21s", want: "5s wrote, 12s wrote, 20s wrote"},
		{name: "ready late", keepAlive: keeps, script: []step{{"", func(*world) { time.Sleep(time.Second) }}}, until: "9s", want: "8s wrote"},
		{name: "messages come", keepAlive: keeps, script: []step{{"5s", message}}, until: "9s", want: "8s wrote"},
		{name: "off", keepAlive: &KeepAliveOptions{}, until: "1h"},
		{name: "after the end", keepAlive: keeps, script: []step{{"9s", end}}, until: "1h", want: "8s wrote, 9s stopped, 9s cut: use of closed network connection"},
	})
}

func TestAKeepAliveMessageThatCannotBeWrittenEndsTheSession(t *testing.T) {
	fails := func(err error) *special { return &special{write: func(conn.Message) error { return err }} }
	slow := &KeepAliveOptions{Every: 8 * time.Second, Message: func() conn.Message { time.Sleep(2 * time.Second); return conn.Message{Data: []byte(alive)} }}
	holds := func(w *world) { w.link.Acquire(context.Background()) }
	play(t, []scene{
		{name: "after last words", keepAlive: keeps, special: fails(errBroken), until: "1h", want: "8s wrote, 9s cut: broken pipe"},
		{name: "bad", keepAlive: keeps, special: fails(conn.ErrBadMessage), until: "1h", want: "8s wrote, 8s cut: " + conn.ErrBadMessage.Error()},
		{name: "Goexit", keepAlive: &KeepAliveOptions{Every: 8 * time.Second, Message: func() conn.Message { runtime.Goexit(); return conn.Message{} }}, until: "1h",
			want: "8s cut: KeepAlive.Message: " + xsync.ErrNotReturned.Error()},
		{name: "Shutdown", keepAlive: keeps, special: fails(conn.ErrBadMessage), script: []step{{"5s", leave}}, until: "1h", want: "8s wrote"},
		{name: "unless it waits and the session has ended", keepAlive: keeps, script: []step{{"5s", holds}, {"10s", cut}, {"11s", end}}, until: "1h",
			want: "11s stopped, 10s cut: use of closed network connection"},
		{name: "Stop waits", keepAlive: slow, script: []step{{"9s", end}}, until: "1h",
			want: "9s await KeepAlive.Message, 10s wrote, 10s stopped, 9s cut: use of closed network connection"},
	})
}
