package drain_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	drainsim "github.com/redial-go/redial/bench/herd/drain"
	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/drain"
)

// Ten thousand real Conns (a thousand with the race detector) and a real drain.Group in virtual time, and the model.
func TestARealGroupDrainsAsTheModelSays(t *testing.T) {
	o, tolerance := drainsim.Options{Clients: 10_000, RTT: -1, Seed: 3, Window: time.Minute}, 0.25
	if raceEnabled || testing.Short() {
		o.Clients, o.Window, tolerance = 1_000, 6*time.Second, 0.4 // fewer clients, more noise
	}
	for name, options := range map[string]drain.Options{
		"cut":    {Window: -1},
		"drain":  {Window: o.Window},
		"notice": {Window: o.Window},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				options.Lead, options.Rand, options.Closers = -1, rand.NewPCG(3, 1), o.Clients
				real := measure(t, o.Clients, name == "notice", &options)
				model := run(t, o, name)
				t.Logf("real %+v; model: peak %d, away %v, back %v", real, model.Peak, model.Away, model.Back)
				require.InEpsilon(t, model.Peak, real.peak, tolerance)
				require.InDelta(t, model.Away.Seconds(), real.away.Seconds(), 0.2)
				require.InDelta(t, model.Back.Seconds(), real.back.Seconds(), 0.5)
				require.Equal(t, model.PerClient, real.dials)
			})
		})
	}
}

// measured is what is compared.
type measured struct {
	peak       int
	dials      float64 // per client
	away, back time.Duration
}

// venue is the servers that the clients come back to: they complete one handshake after the
// other, 500 per second.
type venue struct {
	mu    sync.Mutex // guards what follows; not held across a wait
	idle  time.Time  // when the last handshake will be complete
	begun time.Time  // the drain; zero: it has not begun
	bins  map[time.Duration]int
	dials int
	away  time.Duration // the longest
	back  time.Time     // the last session that began
	all   []visitor
}

// visitor is what the venue knows of a Conn.
type visitor struct {
	conn   *reconnect.Conn
	newest *conntest.Fake
	up     int // ready sessions
	lost   time.Time
}

// open returns a Conn that has dialed.
func (v *venue) open(t *testing.T, i int) *reconnect.Conn {
	one := &v.all[i]
	trace := &reconnect.Trace{
		SessionReady: func(*reconnect.Session) {
			v.mu.Lock()
			defer v.mu.Unlock()
			if one.up++; one.up == 1 && !v.begun.IsZero() {
				v.away = max(v.away, time.Since(one.lost))
			}
			v.back = time.Now()
		},
		SessionDone: func(reconnect.SessionDone) {
			v.mu.Lock()
			defer v.mu.Unlock()
			one.up--
			one.lost = time.Now()
		},
	}
	c, err := reconnect.New(reconnect.DialFunc(func(ctx context.Context) (conn.Conn, error) { return v.dial(ctx, one) }),
		&reconnect.Options{
			OnMessage: func(context.Context, reconnect.Message) {},
			Rotate:    reconnect.Rotation{Drain: time.Second},
			Run:       reconnect.RunOptions{Trace: trace, Rand: rand.NewPCG(3, uint64(i))},
		})
	require.NoError(t, err)
	return c
}

// dial sends SYNs as Linux does, until there is room in the backlog, and waits for its turn there.
func (v *venue) dial(ctx context.Context, one *visitor) (conn.Conn, error) {
	f := conntest.NewFake(nil)
	v.mu.Lock()
	one.newest = f
	if !v.begun.IsZero() {
		v.dials++
		v.bins[time.Since(v.begun)/fleet.Bin]++
	}
	v.mu.Unlock()
	wait, room := v.join()
	for next := time.Second; !room; next *= 2 {
		if !sleep(ctx, next) {
			return nil, context.Cause(ctx)
		}
		wait, room = v.join()
	}
	if connected := backoff.AttemptFrom(ctx).Connected; connected != nil {
		connected()
	}
	if !sleep(ctx, wait) {
		return nil, context.Cause(ctx)
	}
	return f.Conn(), nil
}

// join returns how long it takes until a handshake is complete that begins now.
func (v *venue) join() (wait time.Duration, room bool) {
	const work, backlog = 2 * time.Millisecond, 4096
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	switch {
	case v.begun.IsZero():
		return 0, true
	case v.idle.Before(now):
		v.idle = now
	case v.idle.Sub(now) > backlog*work:
		return 0, false
	}
	v.idle = v.idle.Add(work)
	return v.idle.Sub(now), true
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// measure lets a Group get rid of n Conns.
func measure(t *testing.T, n int, notice bool, o *drain.Options) (m measured) {
	g, err := drain.New(o)
	require.NoError(t, err)
	v := &venue{bins: map[time.Duration]int{}, all: make([]visitor, n)}
	for i := range v.all {
		v.all[i].conn = v.open(t, i)
	}
	time.Sleep(time.Hour)
	for i := range v.all {
		v.mu.Lock()
		c, old := v.all[i].conn, v.all[i].newest
		v.mu.Unlock()
		var tell func(time.Time)
		if notice {
			tell = func(by time.Time) { c.Rotate(1, reconnect.Advice{By: by}) }
		}
		g.AddNotice(func(code int, reason string) error {
			old.Fail(&conn.CloseError{Code: code, Reason: reason})
			return nil
		}, tell)
	}
	v.mu.Lock()
	v.begun = time.Now()
	v.mu.Unlock()
	require.NoError(t, g.Drain(t.Context()))
	time.Sleep(10 * time.Minute)
	v.mu.Lock()
	m.away, m.back, m.dials = v.away, v.back.Sub(v.begun), float64(v.dials)/float64(n)
	for _, n := range v.bins {
		m.peak = max(m.peak, n)
	}
	v.mu.Unlock()
	for i := range v.all {
		c := v.all[i].conn
		require.Equal(t, reconnect.StateReady, c.Status().State)
		c.Close()
		<-c.Done()
	}
	return m
}
