package rotate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// pairing is a kind of server and a way to rotate.
type pairing struct {
	server second
	way    reconnect.Overlap
	naive  bool          // the client does not wait for the welcome in OnSession
	closes time.Duration // when the server closes its oldest connection; 0: never
}

func (p pairing) String() string {
	name := fmt.Sprint(p.server, "/", [...]string{"Hold", "Mix", "BreakFirst"}[p.way])
	if p.naive {
		name += "/naive"
	}
	if p.closes > 0 {
		name += "/lost"
	}
	return name
}

// outcome is what came of a pairing after five minutes.
type outcome struct {
	log     string
	missing int // numbers
	peak    int // connections at one time, those that were refused by a status included
	dials   int
}

// play rotates after a virtual second and a bit. The server sends a number each 100 ms. A dial
// takes 130 ms.
func (p pairing) play(t *testing.T) outcome {
	// Start the server.
	n := new(conntest.Network)
	s := &numberServer{second: p.server, stagger: 10 * time.Millisecond}
	l, err := n.Listen(scene.WSAddr)
	require.NoError(t, err)
	s.run(t, l, 100*time.Millisecond)
	if p.closes > 0 {
		time.AfterFunc(p.closes, func() { s.closeFirst(0) })
	}
	// Start the client.
	d := &dialer.WebSocket{
		URL: "ws://" + scene.WSAddr,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			time.Sleep(130 * time.Millisecond)
			return n.DialContext(ctx, network, addr)
		},
	}
	d.Prepare = func(ctx context.Context, r *dialer.Request) error {
		if token, ok := reconnect.HintFrom(ctx).(string); ok {
			r.URL += "?token=" + token
		}
		return nil
	}
	o := scene.WithPolicy(scene.Doubling{})
	o.Run.Rand = rand.New(rand.NewPCG(1, 2))
	o.Rotate = reconnect.Rotation{Overlap: p.way, Drain: 505 * time.Millisecond} // not at the instant of a number
	if !p.naive {
		o.OnSession = awaitWelcome
	}
	var a reconnect.Advice
	if p.server == secondIsNoResume {
		o.Resumable, a.Hint = true, "1"
	}
	c, err := reconnect.New(d, &o)
	require.NoError(t, err)
	t.Cleanup(func() { scene.CloseAndWait(c) })
	// Rotate, and read.
	time.AfterFunc(1050*time.Millisecond, func() { c.Rotate(1, a) })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute+50*time.Millisecond)
	defer cancel()
	log := new(numberLog)
	for err == nil {
		err = log.add(c.Read(ctx, nil))
	}
	require.ErrorIs(t, err, context.DeadlineExceeded)
	return outcome{log.String(), len(log.missing()), n.Count(scene.WSAddr).MaxOpen, len(n.Dials(scene.WSAddr))}
}

// The table in reconnect/README.md of ways to rotate is made of these.
func TestEachWayToRotateWithEachKindOfServer(t *testing.T) {
	const hold, mix, breakFirst = reconnect.OverlapHold, reconnect.OverlapMix, reconnect.OverlapBreakFirst
	const aMinute = time.Minute + 50*time.Millisecond
	for _, test := range []struct {
		pairing
		want outcome
	}{
		{pairing{server: secondGetsAll, way: hold}, outcome{"1:2-16 (rotated planned overlapped) 2:12-3000", 0, 2, 2}},
		{pairing{server: secondGetsAll, way: mix}, outcome{"1:2-12 2:12 1:13 2:13 1:14 2:14 1:15 2:15 1:16 2:16 (rotated planned overlapped) 2:17-3000", 0, 2, 2}},
		{pairing{server: secondGetsAll, way: breakFirst}, outcome{"1:2-10 (rotated planned) 2:12-3000", 1, 1, 2}},
		{pairing{server: secondShares, way: hold}, outcome{"1:2-12 1:14 1:16 (rotated planned overlapped) 2:13 2:15 2:17-3000", 0, 2, 2}},
		{pairing{server: secondShares, way: mix}, outcome{"1:2-12 2:13 1:14 2:15 1:16 (rotated planned overlapped) 2:17-3000", 0, 2, 2}},
		{pairing{server: secondShares, way: breakFirst}, outcome{"1:2-10 (rotated planned) 2:12-3000", 1, 1, 2}},
		{pairing{server: secondReplaces, way: hold}, outcome{"1:2-13 (close_other planned overlapped) 2:12-3000", 0, 2, 2}},
		{pairing{server: secondReplaces, way: mix}, outcome{"1:2-12 2:12 1:13 2:13 (close_other planned overlapped) 2:14-3000", 0, 2, 2}},
		{pairing{server: secondReplaces, way: breakFirst}, outcome{"1:2-10 (rotated planned) 2:12-3000", 1, 1, 2}},
		{pairing{server: secondReplacesBefore, way: hold}, outcome{"1:2-11 (close_other) 2:14-3000", 2, 2, 2}},
		{pairing{server: secondReplacesBefore, way: mix}, outcome{"1:2-11 (close_other) 2:14-3000", 2, 2, 2}},
		{pairing{server: secondReplacesBefore, way: breakFirst}, outcome{"1:2-10 (rotated planned) 2:12-3000", 1, 1, 2}},
		{pairing{server: secondIsRefused, way: hold}, outcome{"1:2-3000", 0, 2, 10}},
		{pairing{server: secondIsRefused, way: mix}, outcome{"1:2-3000", 0, 2, 10}},
		{pairing{server: secondIsRefused, way: breakFirst}, outcome{"1:2-10 (rotated planned) 2:12-3000", 1, 1, 2}},
		{pairing{server: secondIsClosed, way: hold}, outcome{"1:2-3000", 0, 2, 10}},
		{pairing{server: secondIsClosed, way: mix}, outcome{"1:2-3000", 0, 2, 10}},
		{pairing{server: secondIsClosed, way: breakFirst}, outcome{"1:2-10 (rotated planned) 2:12-3000", 1, 1, 2}},
		{pairing{server: secondIsNoResume, way: hold}, outcome{"1:2-28 (rotated planned overlapped) 2:24-3000", 0, 2, 3}},
		{pairing{server: secondIsNoResume, way: mix}, outcome{"1:2-24 2:24 1:25 2:25 1:26 2:26 1:27 2:27 1:28 2:28 (rotated planned overlapped) 2:29-3000", 0, 2, 3}},
		{pairing{server: secondIsNoResume, way: breakFirst}, outcome{"1:2-10 (rotated planned resumed) 2:11-3000", 0, 1, 2}},

		// A client that does not wait for the welcome takes a connection for ready that is then closed.
		{pairing{server: secondIsClosed, way: hold, naive: true}, outcome{"1:2-11 (rotated planned overlapped) (close_other) 3:24-3000", 12, 2, 3}},
		{pairing{server: secondIsClosed, way: mix, naive: true}, outcome{"1:2-11 (rotated planned overlapped) (close_other) 3:24-3000", 12, 2, 3}},
		{pairing{server: secondIsClosed, way: breakFirst, naive: true}, outcome{"1:2-10 (rotated planned) 2:12-3000", 1, 1, 2}},

		// The old session is lost while the next is refused, which is redialed as after any loss.
		{pairing{server: secondIsRefused, way: hold, closes: aMinute}, outcome{"1:2-600 (close_other) 2:612-3000", 11, 2, 7}},
		{pairing{server: secondIsClosed, way: hold, closes: aMinute}, outcome{"1:2-600 (close_other) 8:612-3000", 11, 2, 8}},
	} {
		t.Run(test.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { require.Equal(t, test.want, test.play(t)) })
		})
	}
}
