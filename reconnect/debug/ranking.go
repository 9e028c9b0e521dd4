package debug

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// ranking is the list of all Conns, the worst first. All who look share it until something has
// changed. The mutex Page.look guards it.
type ranking struct {
	version uint64 // that of the Page from which it was made
	made    time.Time
	list    []ranked // does not change
	counts  countsInfo
}

// ranked is a Conn in the ranking.
type ranked struct {
	*watched
	trouble trouble
	key     int64
}

// rankingAge is how old a ranking may be if nothing has happened: a Conn that is flapping stops
// that by itself.
const rankingAge = 2 * time.Second

// ranked returns all Conns, the worst first: those that have ended by themselves, the last
// first; those without a session, the longest first; those that are flapping, the most losses
// first; those that are ready, the last failure first; and those that were closed. The
// caller must not change the list.
func (p *Page) ranked(now time.Time) ([]ranked, countsInfo) {
	p.look.Lock()
	defer p.look.Unlock()
	version := p.version.Load()
	p.mu.Lock()
	r := p.ranking
	if r != nil && version == r.version && now.Sub(r.made) < rankingAge {
		p.mu.Unlock()
		return r.list, r.counts
	}
	r = &ranking{version: version, made: now, list: make([]ranked, 0, len(p.conns))}
	for _, w := range p.conns {
		r.list = append(r.list, ranked{watched: w})
	}
	p.ranking = r
	p.mu.Unlock()
	for i := range r.list {
		x := &r.list[i]
		x.trouble, x.key = x.watched.trouble(now)
		r.counts.add(x.trouble)
	}
	slices.SortFunc(r.list, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.trouble, b.trouble), cmp.Compare(a.key, b.key), cmp.Compare(a.id, b.id))
	})
	return r.list, r.counts
}

// perPage is how many Conns one page shows.
const perPage = 100

// found is what a query has found.
type found struct {
	list   []ranked // one page of it
	total  int
	from   int // the index of the first
	page   int // from 1
	pages  int // at least 1
	counts countsInfo
}

// find returns the page of the Conns that q asks for.
func (p *Page) find(q *query, now time.Time) found {
	list, counts := p.ranked(now)
	if text := strings.ToLower(q.text); text != "" || q.only {
		list = slices.Collect(func(yield func(ranked) bool) {
			for _, w := range list {
				if (!q.only || w.trouble == q.show) && strings.Contains(w.text, text) && !yield(w) {
					return
				}
			}
		})
	}
	f := found{total: len(list), counts: counts, pages: max((len(list)+perPage-1)/perPage, 1)}
	f.page = min(max(q.page, 1), f.pages)
	f.from = (f.page - 1) * perPage
	f.list = list[f.from:min(f.from+perPage, len(list))]
	return f
}
