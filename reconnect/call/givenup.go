package call

import "container/list"

// givenUp holds the ids of questions that were given up and that their session may still answer.
// Such an answer would look like the answer to a newer question with the same id. Client.mu guards it.
type givenUp[K comparable] struct {
	limit int                        // how many ids are remembered
	ids   map[asked[K]]*list.Element // nil: none yet
	all   list.List                  // of asked[K], the oldest first
}

// asked is an id, and the session by which it was asked.
type asked[K comparable] struct {
	session uint64
	id      K
}

func (g *givenUp[K]) len() int { return len(g.ids) }

func (g *givenUp[K]) has(a asked[K]) bool {
	_, ok := g.ids[a]
	return ok
}

// add remembers a, and reports whether the oldest id was forgotten to make room.
func (g *givenUp[K]) add(a asked[K]) (forgotten bool) {
	if forgotten = len(g.ids) == g.limit; forgotten {
		g.remove(g.all.Front().Value.(asked[K]))
	}
	if g.ids == nil {
		g.ids = make(map[asked[K]]*list.Element)
	}
	g.ids[a] = g.all.PushBack(a)
	return forgotten
}

// remove forgets a, if it is there.
func (g *givenUp[K]) remove(a asked[K]) {
	if e, ok := g.ids[a]; ok {
		g.all.Remove(e)
		if delete(g.ids, a); len(g.ids) == 0 {
			g.ids = nil // so that a quiet Client keeps no memory of them
		}
	}
}

// removeAll forgets the ids of a session.
func (g *givenUp[K]) removeAll(session uint64) {
	for a := range g.ids {
		if a.session == session {
			g.remove(a)
		}
	}
}
