package queueing

import "math/rand/v2"

// network holds the requests on their way to the server. Each takes Exp(mean): a time
// without memory, so that at any moment what is left of it for any of them is
// Exp(mean) again, whatever it has taken so far. So the next of n arrives after
// Exp(mean/n), and is any of them: instead of a time for each in a queue there is one
// for all, drawn anew whenever n changes.
type network struct {
	rand    *rand.Rand
	mean    float64 // ns
	flying  []request
	arrival int64 // of the next; of no meaning while none is flying
}

// next returns when the next request arrives, false if there is none.
func (n *network) next() (at int64, ok bool) { return n.arrival, len(n.flying) > 0 }

func (n *network) push(now int64, q request) {
	n.flying = append(n.flying, q)
	n.draw(now)
}

// pop takes out the request that arrives now.
func (n *network) pop(now int64) request {
	i, last := n.rand.IntN(len(n.flying)), len(n.flying)-1
	q := n.flying[i]
	n.flying[i] = n.flying[last]
	n.flying = n.flying[:last]
	n.draw(now)
	return q
}

func (n *network) draw(now int64) {
	if len(n.flying) > 0 {
		n.arrival = now + exponential(n.rand, n.mean/float64(len(n.flying)))
	}
}

// exponential draws from Exp with a mean in ns, rounded to the ns. (Like all
// conversions of products here float64 keeps machines that can from adding before
// they round.)
func exponential(r *rand.Rand, mean float64) int64 {
	return int64(float64(r.ExpFloat64()*mean) + 0.5)
}
