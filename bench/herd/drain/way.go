package drain

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Way is how a server gets rid of its clients.
type Way struct {
	Name     string
	Summary  string
	Replaces bool // the server warns its clients, which replace their connections before it closes them

	// Leaves returns how each connection leaves. o has its defaults.
	Leaves func(o Options, r *rand.Rand) []fleet.Leave
}

// The figures of servers that are in use.
const (
	phoenixBatch     = 10_000           // Phoenix.Socket.PoolDrainer: batch_size
	phoenixInterval  = 2 * time.Second  // Phoenix.Socket.PoolDrainer: batch_interval
	natsDuration     = 2 * time.Minute  // nats-server: lame_duck_duration
	natsGrace        = 10 * time.Second // nats-server: lame_duck_grace_period, in which nothing is closed
	centrifugeAtOnce = 128              // centrifuge: closes under way at once
)

// Ways returns the ways that are compared.
func Ways() []Way {
	return []Way{
		{Name: "cut", Summary: "all connections are closed at once", Leaves: closes(
			func(Options, int, *rand.Rand) time.Duration { return 0 })},
		{Name: "phoenix", Summary: "batches of 10,000, one each 2 s: the figures of Phoenix's PoolDrainer", Leaves: closes(
			func(_ Options, i int, _ *rand.Rand) time.Duration {
				return time.Duration(i/phoenixBatch) * phoenixInterval
			})},
		{Name: "batches", Summary: "batches, one each 2 s, as large as the window needs", Leaves: closes(
			func(o Options, i int, _ *rand.Rand) time.Duration {
				n := max(int(o.Window/phoenixInterval), 1)
				return time.Duration(i/max((o.Clients+n-1)/n, 1)) * phoenixInterval
			})},
		{Name: "centrifuge", Summary: "128 closes under way at a time, each a round trip: centrifuge's rule", Leaves: closes(
			func(o Options, i int, _ *rand.Rand) time.Duration { return time.Duration(i/centrifugeAtOnce) * o.RTT })},
		{Name: "lame duck 2m", Summary: "nats-server's lame duck with its own 2 min, less its 10 s of grace", Leaves: lameDuck(
			func(Options) time.Duration { return natsDuration - natsGrace })},
		{Name: "lame duck", Summary: "nats-server's lame duck within the window", Leaves: lameDuck(
			func(o Options) time.Duration { return o.Window })},
		{Name: "told", Summary: "all are closed at once, and told to wait for an even draw of the window", Leaves: told},
		{Name: "draws", Summary: "each is closed at a draw from the whole window", Leaves: closes(
			func(o Options, _ int, r *rand.Rand) time.Duration { return backoff.Uniform(r, 0, o.Window) })},
		{Name: "drain", Summary: "reconnect/drain: each has a slot of the window, in a random order, and is closed at a draw from that", Leaves: closes(
			func(o Options, i int, r *rand.Rand) time.Duration { return o.slot(i, o.Window, r) })},
		{Name: "notice", Summary: "each is told in its slot, a quarter of the window before its close, and replaces its connection: reconnect/drain with AddNotice, and clients that rotate",
			Replaces: true, Leaves: notice(func(o Options) time.Duration { return o.Window / 4 })},
		{Name: "notice all", Summary: "the same, but all are told at the beginning, and are closed at the end of the window",
			Replaces: true, Leaves: notice(func(o Options) time.Duration { return o.Window })},
	}
}

// closes are connections that are closed, each at a time of its own, in a random order.
func closes(at func(o Options, i int, r *rand.Rand) time.Duration) func(Options, *rand.Rand) []fleet.Leave {
	return func(o Options, r *rand.Rand) []fleet.Leave {
		all := make([]fleet.Leave, o.Clients)
		for i, who := range r.Perm(o.Clients) {
			all[who].Close = at(o, i, r)
		}
		return all
	}
}

// lameDuck is the rule of nats-server: between two closes it pauses for a random time below the time
// within which all are to be closed, divided by the clients, but for at least half of that, and for at
// most 1 s. The mean is 5/8 of that, so that a drain takes 5/8 of the time.
func lameDuck(within func(Options) time.Duration) func(Options, *rand.Rand) []fleet.Leave {
	return func(o Options, r *rand.Rand) []fleet.Leave {
		all := make([]fleet.Leave, o.Clients)
		each := min(max(within(o)/time.Duration(max(o.Clients, 1)), 1), time.Second)
		at := time.Duration(0)
		for _, who := range r.Perm(o.Clients) {
			all[who].Close = at
			at += max(time.Duration(r.Int64N(int64(each))), each/2)
		}
		return all
	}
}

// slot returns a time in slot i of so many as there are clients, which make up a span.
func (o *Options) slot(i int, span time.Duration, r *rand.Rand) time.Duration {
	return time.Duration((float64(i) + r.Float64()) / float64(o.Clients) * float64(span))
}

func told(o Options, r *rand.Rand) []fleet.Leave {
	all := make([]fleet.Leave, o.Clients)
	for i := range all {
		all[i].Told = backoff.Uniform(r, 0, o.Window)
	}
	return all
}

// notice is a server that tells each client some time before it closes its connection. The
// client does what reconnect.Conn.Rotate does with an Advice that has By: it dials at an even
// draw from now to By, less what the last opening took.
func notice(warn func(Options) time.Duration) func(Options, *rand.Rand) []fleet.Leave {
	return func(o Options, r *rand.Rand) []fleet.Leave {
		all := make([]fleet.Leave, o.Clients)
		opening := 2*o.RTT + time.Duration(float64(time.Second)/o.Capacity)
		ahead := warn(o)
		for i, who := range r.Perm(o.Clients) {
			told := o.slot(i, o.Window-ahead, r)
			all[who] = fleet.Leave{Close: told + ahead, Dial: max(told+backoff.Uniform(r, 0, ahead-opening), 1)}
		}
		return all
	}
}
