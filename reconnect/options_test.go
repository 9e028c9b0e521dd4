package reconnect_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// numbers returns the paths of all fields of a struct that are numbers.
func numbers(t reflect.Type, path string, index []int) map[string][]int {
	found := map[string][]int{}
	for i := range t.NumField() {
		f := t.Field(i)
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

// Whatever number stands in an option: it is refused by name, or the Conn works.
func TestNoNumberInAnOptionBreaksAConn(t *testing.T) {
	options := numbers(reflect.TypeFor[reconnect.Options](), "", nil)
	require.Len(t, options, 11)
	for name, index := range options {
		for _, value := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64} {
			t.Run(fmt.Sprint(name, " ", value), func(t *testing.T) {
				inBubble(t, func(t *testing.T, s *scene) {
					s.fake = alive
					o, _ := sending(reconnect.WhenDownKeep)
					reflect.ValueOf(o).Elem().FieldByIndex(index).SetInt(value)
					c, err := reconnect.New(s, o)
					if err != nil {
						require.ErrorContains(t, err, "Options."+name)
						require.Negative(t, value)
						return
					}
					defer quit(c)
					if name == "Stall.Limit" || name == "OpenTimeout" {
						return // with 1 no session lasts
					}
					if name == "Run.StartSpread" {
						return // with the largest number the first dial is centuries away
					}
					s.wantDial().refuse(errLost)
					peer := s.wantDial().accept()
					deliver(peer, 1, 2)
					wantMessage(t, c, 1, "1")
					err = c.Send(out("a"))
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

// limited is a policy with these limits on connecting and on the handshake.
type limited [2]time.Duration

func (l limited) Next(backoff.History, *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: time.Second, Connect: l[0], Handshake: l[1]}, true
}

func TestLimitsThatCannotBeAddedUpAreNoLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(limited{math.MaxInt64, math.MaxInt64})
		var limits []time.Duration
		o.Run.Trace = &reconnect.Trace{DialStart: func(d reconnect.DialStart) { limits = append(limits, d.Limit) }}
		s.open(&o)
		s.wantDial().refuse(errLost)
		d := s.wantDial()
		require.Equal(t, time.Duration(math.MaxInt64), limits[1])
		require.NoError(t, d.ctx.Err())
		d.accept()
	})
}

// A name may stand in either place, but not be two.
func TestTwoNamesAreRefused(t *testing.T) {
	dial := reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return nil, errLost })
	_, err := reconnect.New(dial, &reconnect.Options{Name: "a", Run: reconnect.RunOptions{Name: "b"}})
	require.ErrorContains(t, err, `Options.Name is "a", and Options.Run.Name is "b"`)
}
