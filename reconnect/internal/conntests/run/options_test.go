package run_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// New names the option that is wrong.
func TestNewNamesTheOptionThatIsWrong(t *testing.T) {
	dial := reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return nil, scene.ErrLost })
	push := func(context.Context, reconnect.Message) {}
	probe := func(context.Context, func(conn.Message) error) error { return nil }
	idle := func() conn.Message { return scene.Text("x") }
	for want, o := range map[string]*reconnect.Options{
		"Options.Inbox:":          {OnMessage: push, Inbox: reconnect.Inbox{Messages: 1}},
		"Options.OnSeam":          {OnSeam: func(context.Context, *reconnect.Seam) {}},
		"Options.MarkRefetch":     {OnMessage: push, MarkRefetch: true},
		"InboxDiscard: there":     {MarkRefetch: true, Inbox: reconnect.Inbox{Overflow: reconnect.InboxDiscard}},
		"Options.Inbox.Messages":  {Inbox: reconnect.Inbox{Messages: -1}},
		"Options.Inbox.Bytes":     {Inbox: reconnect.Inbox{Bytes: -1}},
		"Options.Inbox.Overflow":  {Inbox: reconnect.Inbox{Overflow: 17}},
		"Options.Outbox.Overflow": {Outbox: reconnect.Outbox{Overflow: 17}},
		"Options.WhenDown":        {WhenDown: 17},
		"Options.Liveness.Probe":  {Liveness: reconnect.Liveness{Limit: -1, Probe: probe}},
		"Rotate.After is 30ns":    {Rotate: reconnect.Rotation{After: 30}},
		"ProbeEvery is 30ns":      {Liveness: reconnect.Liveness{ProbeEvery: 30}},
		"KeepAlive.Every is 8ns":  {KeepAlive: reconnect.KeepAlive{Every: 8, Message: idle}},
		"Options.Run.Kick":        {Run: reconnect.RunOptions{Kick: make(chan struct{})}},
		"RunOptions.Gate":         {Run: reconnect.RunOptions{Gate: &scene.Gate{}}},
		"RunOptions.Host \"h.e\"": {Run: reconnect.RunOptions{Host: "h.e"}},
	} {
		c, err := reconnect.New(dial, o)
		require.ErrorContains(t, err, want)
		require.Nil(t, c)
	}
	_, err := reconnect.New(nil, nil)
	require.ErrorContains(t, err, "Dialer")
	_, err = reconnect.New(invalidDialer{dial}, nil)
	require.ErrorContains(t, err, "URL")
}

// invalidDialer is a dialer whose Validate fails.
type invalidDialer struct{ reconnect.DialFunc }

func (invalidDialer) Validate() error { return errors.New("dialer: URL: no host") }

func TestNewNamesTheOptionOfSendingThatIsWrong(t *testing.T) {
	done := func(context.Context, reconnect.Receipt) {}
	keep := func(context.Context, reconnect.Outgoing, error) bool { return true }
	for _, test := range []struct {
		want string
		o    reconnect.Options
	}{
		{"Options.Outbox.Messages", reconnect.Options{Outbox: reconnect.Outbox{OnReceipt: done, Messages: -1}}},
		{"Options.Outbox.Bytes", reconnect.Options{Outbox: reconnect.Outbox{OnReceipt: done, Bytes: -1}}},
		{"Options.Outbox.Overflow", reconnect.Options{Outbox: reconnect.Outbox{OnReceipt: done, Overflow: reconnect.OutboxReplaceKey + 1}}},
		{"Options.Outbox.Keep", reconnect.Options{WhenDown: reconnect.WhenDownWait, Outbox: reconnect.Outbox{OnReceipt: done, Keep: keep}}},
		{"Options.WhenDown", reconnect.Options{WhenDown: reconnect.WhenDownKeep + 1}},
		{"Options.Stall.Expected", reconnect.Options{Stall: reconnect.Stall{Expected: func(time.Time) bool { return true }}}},
		{"Options.Stall.Expected", reconnect.Options{Stall: reconnect.Stall{Limit: -1, Expected: func(time.Time) bool { return true }}}},
	} {
		_, err := reconnect.New(scene.New(t), &test.o)
		require.ErrorContains(t, err, test.want)
	}
}

// With any number in any option, New refuses it by name or the Conn works.
func TestNoNumberInAnOptionBreaksAConn(t *testing.T) {
	// Find every number in Options, and try the extremes.
	options := numbers(reflect.TypeFor[reconnect.Options](), "", nil)
	maps.DeleteFunc(options, func(name string, _ []int) bool { // they need two fields each, and have their own tests
		return strings.HasPrefix(name, "Pace.") || strings.HasPrefix(name, "KeepAlive.")
	})
	require.Len(t, options, 14)
	for name, index := range options {
		for _, value := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64} {
			t.Run(fmt.Sprint(name, " ", value), func(t *testing.T) {
				scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
					s.Fake = scene.Alive
					o, _ := scene.Sending(reconnect.WhenDownKeep)
					number := reflect.ValueOf(o).Elem().FieldByIndex(index)
					if number.OverflowInt(value) { // a 32-bit system has other extremes
						value >>= 32
					}
					number.SetInt(value)
					// New accepts the number, or names it in an error if it is negative or an
					// interval of 1 ns.
					c, err := reconnect.New(s, o)
					if err != nil {
						require.ErrorContains(t, err, "Options."+name)
						interval := name == "Rotate.After" || name == "Liveness.ProbeEvery"
						require.True(t, value < 0 || value == 1 && interval, value)
						return
					}
					defer scene.CloseAndWait(c)
					if name == "Stall.Limit" || name == "OpenTimeout" {
						return // because with 1 ns no session lasts
					}
					if name == "Run.StartSpread" {
						return // because with the largest number the first dial is centuries away
					}
					// The Conn redials, receives, sends and ends.
					s.WantDial().Refuse(scene.ErrLost)
					peer := s.WantDial().Accept()
					scene.Deliver(peer, 1, 2)
					scene.WantMessage(t, c, 1, "1")
					err = c.Send(scene.Out("a"))
					if name != "Outbox.Age" && name != "Outbox.Bytes" && name != "Outbox.Messages" {
						require.NoError(t, err)
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					_ = c.Shutdown(ctx)
				})
			})
		}
	}
}

// numbers returns the paths of all fields of a struct that are numbers.
func numbers(t reflect.Type, path string, index []int) map[string][]int {
	found := map[string][]int{}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		at := append(append([]int(nil), index...), i)
		switch f.Type.Kind() {
		case reflect.Int, reflect.Int64:
			found[path+f.Name] = at
		case reflect.Struct:
			for name, at := range numbers(f.Type, path+f.Name+".", at) {
				found[name] = at
			}
		}
	}
	return found
}
