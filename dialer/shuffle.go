package dialer

import (
	"math/rand/v2"
	"net/netip"
	"sync"
)

// shuffler has the signature of [rand.Shuffle]. Several goroutines may call it at once.
type shuffler func(n int, swap func(i, j int))

// newShuffler returns a shuffler that draws from source under mu; a nil source means
// the functions of package rand.
func newShuffler(mu *sync.Mutex, source rand.Source) shuffler {
	if source == nil {
		return rand.Shuffle
	}
	return rand.New(&lockedSource{mu, source}).Shuffle
}

// lockedSource draws one number at a time.
type lockedSource struct {
	mu     *sync.Mutex
	source rand.Source
}

func (l *lockedSource) Uint64() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source.Uint64()
}

// interleave returns addresses in the order in which to try them: each family
// shuffled, and the families in turn (RFC 8305, section 4), beginning with the family
// that the resolver put first.
func interleave(addrs []netip.Addr, shuffle shuffler) []netip.Addr {
	var families [2][]netip.Addr
	firstIs4 := addrs[0].Unmap().Is4()
	seen := make(map[netip.Addr]bool, len(addrs))
	for _, a := range addrs {
		a = a.Unmap()
		if seen[a] {
			continue
		}
		seen[a] = true
		if a.Is4() == firstIs4 {
			families[0] = append(families[0], a)
		} else {
			families[1] = append(families[1], a)
		}
	}
	for _, f := range families {
		shuffle(len(f), func(i, j int) { f[i], f[j] = f[j], f[i] })
	}
	var order []netip.Addr
	for i := range max(len(families[0]), len(families[1])) {
		for _, f := range families {
			if i < len(f) {
				order = append(order, f[i])
			}
		}
	}
	return order
}
