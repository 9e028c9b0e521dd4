package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// watchers starts a server for all peers, and in one process a client of each.
func (x *exam) watchers(peers []string, setup siteSetup, down string) (*process, answer, worker, error) {
	for _, name := range peers {
		p, err := findPeer(name)
		if err != nil {
			return nil, answer{}, nil, err
		}
		if !slices.Contains(setup.Protocols, p.protocol) {
			setup.Protocols = append(setup.Protocols, p.protocol)
		}
	}
	server, at, err := x.serve(setup)
	if err != nil {
		return nil, at, nil, err
	}
	client, err := x.join()
	if err != nil {
		return nil, at, nil, err
	}
	j := job{Peers: peers, Addresses: at.Addresses, Count: 1, Down: down, Wait: x.sizes.wait, Limit: patience}
	_, err = client.do(x.ctx, order{Do: "watch", Job: j})
	return server, at, client, err
}

// poll asks the client until every peer has its figure, or the time is over. A
// peer that has none then gets never.
func (x *exam) poll(client worker, limit time.Duration, figure func(seen) (float64, bool)) (map[string][]float64, error) {
	over := time.NewTimer(limit)
	defer over.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for last := false; ; {
		a, err := client.do(x.ctx, order{Do: "seen"})
		if err != nil {
			return nil, err
		}
		results, missing := map[string][]float64{}, 0
		for _, s := range a.Seen {
			v, ok := figure(s)
			if !ok {
				v = never
				missing++
			}
			results[s.Peer] = []float64{v}
		}
		if missing == 0 || last {
			return results, nil
		}
		select {
		case <-tick.C:
		case <-over.C:
			last = true
		case <-x.ctx.Done():
			return nil, context.Cause(x.ctx)
		}
	}
}

// silent stops the server, and measures when each client says that it is lost.
func (x *exam) silent(peers []string) (map[string][]float64, error) {
	server, _, client, err := x.watchers(peers, siteSetup{}, "")
	if err != nil {
		return nil, err
	}
	stopped := time.Now().UnixNano()
	if err := server.Halt(); err != nil {
		return nil, err
	}
	return x.poll(client, x.sizes.quiet, func(s seen) (float64, bool) { return after(s.Downs, stopped, stopped) })
}

// killed kills the server, starts it again, and measures when each client is back. The outage is
// as long as chance has it, because any length of its own would suit the waits of some.
func (x *exam) killed(peers []string) (map[string][]float64, error) {
	server, at, client, err := x.watchers(peers, siteSetup{}, "")
	if err != nil {
		return nil, err
	}
	killed := time.Now().UnixNano()
	server.end()
	least, most := x.sizes.outage[0], x.sizes.outage[1]
	pause(x.ctx, least+rand.N(most-least))
	setup := siteSetup{Addresses: at.Addresses}
	for p := range at.Addresses {
		setup.Protocols = append(setup.Protocols, p)
	}
	_, back, err := x.serve(setup)
	if err != nil {
		return nil, err
	}
	return x.poll(client, x.sizes.back, func(s seen) (float64, bool) {
		p, err := findPeer(s.Peer)
		if err != nil {
			return 0, false
		}
		return after(s.Ups, killed, back.Since[p.protocol])
	})
}

// after returns how many seconds after zero the first of the times beyond from was.
func after(times []int64, from, zero int64) (float64, bool) {
	for _, t := range times {
		if t > from {
			return max(time.Duration(t-zero).Seconds(), 0), true
		}
	}
	return 0, false
}

// gap has the server send numbered messages with resets in between.
func (x *exam) gap(peers []string) (map[string][]float64, error) {
	server, _, client, err := x.watchers(peers, siteSetup{Resets: true}, feedTopic)
	if err != nil {
		return nil, err
	}
	if _, err := server.do(x.ctx, order{Do: "feed", Feed: x.sizes.feed}); err != nil {
		return nil, err
	}
	pause(x.ctx, time.Second) // what is under way arrives
	a, err := client.do(x.ctx, order{Do: "seen"})
	if err != nil {
		return nil, err
	}
	results := map[string][]float64{}
	for _, s := range a.Seen {
		if s.Twice > 0 {
			return nil, fmt.Errorf("%s: %d messages came twice", s.Peer, s.Twice)
		}
		results[s.Peer] = []float64{float64(x.sizes.feed.Count - s.Came), float64(s.Told), float64(len(s.Ups) - 1)}
	}
	return results, nil
}
