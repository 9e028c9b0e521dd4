package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// LentLimit is the limit on a dial that [Of] gives to a client whose make has none of its own: that of gRPC.
// Simulations need not choose one, see [Client.Lendings].
const LentLimit = 20 * time.Second

// LentLimits are the limits that [Client.Lendings] tries.
var LentLimits = []time.Duration{
	2 * time.Second,   // nats.go and recws
	5 * time.Second,   // centrifuge-go
	10 * time.Second,  // autopaho
	20 * time.Second,  // gRPC
	30 * time.Second,  // net/http's dialer
	45 * time.Second,  // gorilla/websocket's dialer
	127 * time.Second, // Linux, which then stops connecting
}

// Lend returns c with another limit on a dial, or c if it has a limit of its own.
func (c Client) Lend(limit time.Duration) Client {
	if !c.Lent {
		return c
	}
	return c.limited(limit)
}

// Lendings returns c with each of [LentLimits] in turn, or c alone if it has a limit of its own on a dial. No limit is
// best in all circumstances, so a comparison shows the best one for its own.
func (c Client) Lendings() []Client {
	if !c.Lent {
		return []Client{c}
	}
	separator := ":"
	if strings.Contains(c.Name, separator) {
		separator = ","
	}
	var all []Client
	for _, limit := range LentLimits {
		l := c.limited(limit)
		l.Lent = false
		l.Name = fmt.Sprintf("%s%slimit=%v", c.Name, separator, limit)
		all = append(all, l)
	}
	return all
}

// Compare returns a negative number if the herd of s is back before that of o, and a positive one if it is back after
// that. It compares T99, then T100, Up, and Dials.
func (s *Summary) Compare(o *Summary) int {
	return cmp.Or(
		CompareTimes(s.T99, o.T99),
		CompareTimes(s.T100, o.T100),
		cmp.Compare(o.Up, s.Up),
		cmp.Compare(s.Dials, o.Dials),
	)
}

// CompareTimes is cmp.Compare for times of which [Never] is the last.
func CompareTimes(a, b time.Duration) int { return cmp.Compare(uint64(a), uint64(b)) }

// Soonest tries each of c's [Client.Lendings] by calling [Runs], and returns the results of the client whose herd is
// back the soonest, and that client. It calls herd for the herd of a client. If Soonest fails, it returns the results
// until then only for a client with a limit of its own.
func Soonest(
	ctx context.Context, c Client, herd func(Client) Herd, runs, workers int, each func(),
) (best []*Result, client Client, err error) {
	lendings := c.Lendings()
	if len(lendings) == 1 {
		best, err = Runs(ctx, herd(c), runs, workers, each)
		return best, c, err
	}
	var soonest Summary                           // of best
	for _, l := range slices.Backward(lendings) { // with a short limit a herd that is not back soon dials the most
		h, each := herd(l), each
		if best != nil && soonest.T99 != Never {
			// If their mean is not worse, all runs are back by then.
			enough := h.Return() + time.Duration(runs)*soonest.T99 + time.Second
			if h.Watch == 0 || enough < h.Watch {
				short := h
				short.Watch = enough
				results, err := Runs(ctx, short, runs, workers, each)
				if err != nil {
					return nil, c, err
				}
				if s := Summarize(results); CompareTimes(s.T99, soonest.T99) > 0 {
					continue
				}
				each = nil // they are counted already
			}
		}
		results, err := Runs(ctx, h, runs, workers, each)
		if err != nil {
			return nil, c, err
		}
		if s := Summarize(results); best == nil || s.Compare(&soonest) <= 0 {
			best, client, soonest = results, l, s
		}
	}
	return best, client, nil
}
