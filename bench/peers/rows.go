package peers

import (
	"fmt"
	"strings"
	"time"
)

// row is one thing that is measured of every peer.
type row struct {
	name    string
	title   string // what is measured
	columns []column
	long    bool             // takes long, and is measured only when it is asked for
	takes   func(*peer) bool // nil: everybody

	// one measures a peer, once; side measures all peers, side by side. A row has one
	// of them. A result has a figure for each column.
	one  func(x *exam) ([]float64, error)
	side func(x *exam, peers []string) (map[string][]float64, error)
}

// column is a figure of a row. The ratios are those of the first.
type column struct {
	name   string
	digits int
	ratio  bool // in the first: a ratio to the base says something
}

// sizes are how much each row does.
type sizes struct {
	receive, send, redials int
	echo                   int
	idle, idleMany         int
	idleLong, pairs        int           // connections; pairs of processes for as many as there can be
	inOne                  int           // connections of a process, at most
	settle                 time.Duration // before memory is measured
	feed                   feedOrder
	quiet                  time.Duration // how long a silent server is waited for
	outage                 time.Duration // from a server's death to its return
	back                   time.Duration // how long a return is waited for
	wait                   time.Duration // before a dial; 0: as each library has it
}

var (
	fullSizes = sizes{
		receive: 200_000, send: 100_000, redials: 200, echo: 100_000, idle: 1000, idleMany: 10_000, idleLong: 50_000, pairs: 200,
		inOne: 10_000, settle: 200 * time.Millisecond, // many machines let a process have 20,000 files
		feed:  feedOrder{Count: 10_000, Resets: 10, Every: 4 * time.Millisecond},
		quiet: time.Minute, outage: time.Second, back: time.Minute,
	}
	shortSizes = sizes{ // of the tests
		receive: 500, send: 5 * burst, redials: 2, echo: 300, idle: 10, idleMany: 12, idleLong: 24, pairs: 2,
		inOne: 12, settle: time.Millisecond,
		feed:  feedOrder{Count: 400, Resets: 2, Every: 2 * time.Millisecond},
		quiet: 300 * time.Millisecond, outage: 100 * time.Millisecond, back: 20 * time.Second, wait: time.Millisecond,
	}
)

var (
	perMessage = []column{{name: "ns", ratio: true}, {name: "allocations", digits: 2}}
	perIdle    = []column{{name: "bytes", ratio: true}, {name: "of them stack"}, {name: "µs to open", digits: 1}}
)

// rowsOf returns the rows in their order.
func rowsOf(s sizes) []*row {
	messages := func(do string, size, count int) func(*exam) ([]float64, error) {
		return func(x *exam) ([]float64, error) { return x.messages(do, size, count) }
	}
	idle := func(count int, shared bool) func(*exam) ([]float64, error) {
		return func(x *exam) ([]float64, error) { return x.idle(count, shared) }
	}
	return []*row{
		{name: "receive-128", title: "receive 128 B: CPU of the client per message", columns: perMessage, one: messages("receive", 128, s.receive)},
		{name: "receive-4k", title: "receive 4 KiB: CPU of the client per message", columns: perMessage, one: messages("receive", 4096, s.receive/8)},
		{name: "send-64", title: fmt.Sprintf("%d sends of 128 B from one goroutine, answered together: CPU of the client per send", burst), columns: perMessage,
			one: messages("send", 128, s.send)},
		{name: "echo-64", title: fmt.Sprintf("echo of 128 B, %d under way: CPU of the client per echo", burst), columns: perMessage,
			one: messages("echo", 128, s.echo)},
		{name: "tls-redial", title: "TLS redial: CPU per connection; a peer that does not redial is opened anew",
			columns: []column{{name: "µs, client", ratio: true}, {name: "µs, server"}},
			one:     func(x *exam) ([]float64, error) { return x.redials(s.redials) }},
		{name: "idle-1000", title: fmt.Sprintf("idle, %d connections with a dialer each: live heap and stack of one", s.idle), columns: perIdle,
			one: idle(s.idle, false)},
		{name: "idle-1000-shared", title: fmt.Sprintf("idle, %d connections with one dialer for all: live heap and stack of one", s.idle), columns: perIdle,
			takes: shares, one: idle(s.idle, true)},
		{name: "idle-10000", title: fmt.Sprintf("idle, %d connections with a dialer each: live heap and stack of one", s.idleMany), columns: perIdle,
			one: idle(s.idleMany, false)},
		{name: "idle-10000-shared", title: fmt.Sprintf("idle, %d connections with one dialer for all: live heap and stack of one", s.idleMany), columns: perIdle,
			takes: shares, one: idle(s.idleMany, true)},
		{name: "killed", title: fmt.Sprintf("back after SIGKILL, within %v: from when the server listens again, %v after its death", s.back, s.outage),
			columns: []column{{name: "s", digits: 2}}, takes: redials,
			side: (*exam).killed},
		{name: "silent", title: fmt.Sprintf("a silent server is noticed, at the defaults, within %v", s.quiet),
			columns: []column{{name: "s", digits: 1}},
			side:    (*exam).silent},
		{name: "gap", title: fmt.Sprintf("%d resets in %d numbered messages, one each %v: how many are missing, and how often the reader learned of it", s.feed.Resets, s.feed.Count, s.feed.Every),
			columns: []column{{name: "missing"}, {name: "told"}, {name: "redials"}}, takes: redials,
			side: (*exam).gap},
		{name: "idle-50000", title: fmt.Sprintf("idle, %d connections in several processes with a dialer each: live heap and stack of one", s.idleLong), columns: perIdle,
			long: true, one: idle(s.idleLong, false)},
		{name: "idle-max", title: "as many idle connections as the machine holds, in several processes", long: true,
			columns: []column{{name: "connections"}, {name: "bytes of one"}},
			one:     (*exam).most},
	}
}

func redials(p *peer) bool { return p.redials }

// shares reports whether a peer can share something, or is the base.
func shares(p *peer) bool { return p.share != nil || p == all[0] }

// Rows returns the names of the rows, and of those that take long.
func Rows() (usual, long []string) {
	for _, r := range rowsOf(fullSizes) {
		if r.long {
			long = append(long, r.name)
		} else {
			usual = append(usual, r.name)
		}
	}
	return usual, long
}

func findRow(rows []*row, name string) (*row, error) {
	var names []string
	for _, r := range rows {
		if r.name == name {
			return r, nil
		}
		names = append(names, r.name)
	}
	return nil, fmt.Errorf("find row %q: there are %s", name, strings.Join(names, ", "))
}
