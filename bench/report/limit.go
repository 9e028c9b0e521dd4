package report

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/reconnect/backoff"
)

// herdClient returns the client of that name as the simulated herds of a report have it: with
// [fleet.LentLimit] if the make has no limit of its own on a dial.
func herdClient(name string) (fleet.Client, error) {
	c, err := fleet.Find(name)
	return c.Lend(fleet.LentLimit), err
}

// limitOf returns the limit of a client on a dial, in words.
func limitOf(c fleet.Client) string {
	policy := c.Policy
	if policy == nil {
		policy = &backoff.Adaptive{}
	}
	var first backoff.Step // of several, because limits are jittered downward
	for r, n := rand.New(rand.NewPCG(1, 1)), 0; n < 100; n++ {
		s, _ := policy.Next(backoff.History{}, r)
		first.Connect, first.Handshake = max(first.Connect, s.Connect), max(first.Handshake, s.Handshake)
	}
	switch {
	case c.Lent:
		return fmt.Sprintf("limit on a dial: %s, chosen here (it has none of its own)", inSeconds(c.Limit))
	case c.Limit > 0:
		return fmt.Sprintf("limit on a dial: %s", inSeconds(c.Limit))
	case c.Whole:
		return fmt.Sprintf("limit on a dial: %s, or its wait if that is longer", inSeconds(first.Connect))
	case c.OneConnection:
		return fmt.Sprintf("limit on a dial: %s to connect, then %s", inSeconds(first.Connect), inSeconds(first.Handshake))
	}
	return fmt.Sprintf("limit on a dial: %s to connect; %s later it dials beside it", inSeconds(first.Connect), inSeconds(first.Handshake))
}

// inSeconds is a limit such as "10 s", without what jitter takes from it.
func inSeconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }
