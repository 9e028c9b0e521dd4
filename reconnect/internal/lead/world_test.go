package lead

import "github.com/redial-go/redial/internal/walk"

// world is what the walk visits: the State, the goroutines around it, and the connection. A step of a goroutine is what
// it does without a look at anything that another one may change.
type world struct {
	state State
	woken bool // a deadline that is over: the next wait for bytes ends at once, and clears it
	back  bool // the signal for the supervisor
	token bool // the signal for the reader, at the inbox
	idle  bool // the reader waits for the token, or is about to
	armed bool // the timer
	used  bool // the reader has left since the timer last ticked

	supervisor, reader, beside, context place

	net    [most]thing // what has come and is not read
	inbox  int8        // messages of the link
	side   int8        // messages that another goroutine has put into the inbox
	came   int8        // how many things have come
	ended  bool        // the link has ended; a reader that waits for bytes does not see that
	told   bool        // the supervisor, which lends, has seen that the link has ended
	done   bool        // the context of the Read has ended
	quits  int8        // how many contexts have ended
	handed bool        // the reader has got a message in its last step
	wrong  string
}

const most = 2

// thing is what comes.
type thing uint8

const (
	nothing thing = iota
	message       // a message in one plain frame
	part          // the beginning of one; its rest may never come
	control       // any other frame
)

// place is where a goroutine is.
type place uint8

const (
	top    place = iota // the supervisor before it reads; the others: not in a call
	reads               // waits for bytes
	inside              // the supervisor waits for the rest of a message
	lends               // the supervisor looks whether it has the turn again
	parked              // and waits for it
	wakes               // the supervisor has recalled the turn, and wakes the reader
	over                // the supervisor has ended
	tries               // the reader is in Read, and looks into the inbox
	takes               // the inbox was empty, and idle is set
	asks                // the reader has asked, and wakes the supervisor
	checks              // the reader has the turn, and looks into the inbox again
	begins              // and is about to read
	waits               // waits at the inbox
	tells               // another goroutine has put something beside, or has ended the context, and wakes the reader
)

// rules are the events of the State, and what the goroutines do; a mistake replaces one.
type rules struct {
	take, lend, expire, recall func(State) (State, Act)
	leave                      func(State, bool) (State, Act)
	looksAgain                 bool // the reader looks into the inbox when it has the turn
	tells                      bool // what is put beside wakes a reader that reads
	asksContext                bool // the reader asks its context before it reads
	handsOn                    bool // the reader gives the turn back at what it cannot read
}

var trueRules = rules{State.Take, State.Lend, State.Expire, State.Recall, State.Leave, true, true, true, true}

// config says what can happen.
type config struct {
	things   int8 // how many come
	contexts int8 // how many end
	beside   bool // something is put beside
	keeps    bool // the reader may keep the turn though more has come, until the timer ticks
}

// walker makes the steps.
type walker struct {
	config
	r    rules
	list []walk.Step[world]
}

func (x *walker) steps(from world) []walk.Step[world] {
	x.list = nil
	from.handed = false
	x.outside(from)
	x.supervise(from)
	x.read(from)
	return x.list
}

// add adds a step; free: it needs neither the peer nor the user.
func (x *walker) add(event string, free bool, from world, happen func(w *world)) {
	w := from
	happen(&w)
	x.list = append(x.list, walk.Step[world]{Event: event, Free: free, State: w})
}

// change changes the state.
func (w *world) change(event func(State) (State, Act)) {
	s, act := event(w.state)
	w.state = s
	switch act {
	case Back:
		w.back = true
	case Offer:
		w.wake()
	}
}

// wake is what wakes a reader at the inbox.
func (w *world) wake() {
	if w.idle {
		w.idle, w.token = false, true
	}
}

// next takes the first thing that has come.
func (w *world) next() (t thing) {
	t = w.net[0]
	copy(w.net[:], w.net[1:])
	w.net[most-1] = nothing
	return t
}

// outside are the steps of the peer, the user, the timer, and of goroutines beside.
func (x *walker) outside(from world) {
	if from.came < x.things && !from.ended {
		for t, event := range []string{message: "a message comes", part: "a part of a message comes", control: "another frame comes"} {
			if event != "" && (from.came == 0 || from.net[max(from.came-1, 0)] != part) {
				x.add(event, false, from, func(w *world) { w.put(thing(t)) })
			}
		}
	}
	for i, t := range from.net {
		if t == part {
			x.add("the rest comes", false, from, func(w *world) { w.net[i] = message })
		}
	}
	if from.supervisor == inside {
		x.add("the rest comes", false, from, func(w *world) { w.supervisor, w.inbox = top, w.inbox+1; w.wake() })
	}
	if !from.ended {
		x.add("the link is cut", false, from, func(w *world) { w.ended = true })
	}
	if from.reader == top {
		x.add("Read is called", false, from, func(w *world) { w.reader = tries })
	}
	if from.reader != top && !from.done && from.quits < x.contexts {
		x.add("the context ends", false, from, func(w *world) { w.done, w.context = true, tells; w.quits++ })
	}
	if from.context == tells {
		x.add("the context wakes", true, from, func(w *world) { w.context, w.woken = top, true })
	}
	if x.config.beside && from.beside == top && from.side == 0 {
		x.add("something is put beside", false, from, func(w *world) { w.side, w.beside = 1, tells; w.wake() })
	}
	if from.beside == tells {
		x.add("that is told", true, from, func(w *world) {
			w.beside = over
			if x.r.tells && w.state == Reader {
				w.woken = true
			}
		})
	}
	if from.armed {
		x.add("the timer ticks", true, from, func(w *world) {
			if !w.used {
				w.change(x.r.expire)
			}
			w.armed, w.used = w.state == Free, false
		})
	}
	if from.armed && x.keeps {
		x.add("the timer ticks for a slow reader", true, from, func(w *world) {
			w.change(x.r.expire)
			w.armed, w.used = w.state == Free, false
		})
	}
}

// put puts a thing behind those that have come.
func (w *world) put(t thing) {
	for i := range w.net {
		if w.net[i] == nothing {
			w.net[i] = t
			w.came++
			return
		}
	}
}

// supervise are the steps of the supervisor.
func (x *walker) supervise(from world) {
	act := func(event string, happen func(w *world)) { x.add("supervisor "+event, true, from, happen) }
	switch from.supervisor {
	case top:
		switch {
		case from.ended:
			act("ends", func(w *world) { w.supervisor = over })
		case from.state == Asked:
			act("lends", func(w *world) { w.change(x.r.lend); w.supervisor, w.armed, w.used = lends, true, false })
		default:
			act("reads", func(w *world) { w.supervisor = reads })
		}
	case reads:
		switch {
		case from.woken:
			act("is woken", func(w *world) { w.woken, w.supervisor = false, top })
		case from.net[0] == part:
			act("reads a part", func(w *world) { w.next(); w.supervisor = inside })
		case from.net[0] != nothing:
			act("reads", func(w *world) {
				if w.supervisor = top; w.next() == message {
					w.inbox++
					w.wake()
				}
			})
		case from.ended:
			act("sees the end", func(w *world) { w.supervisor = top })
		}
	case inside:
		if from.woken {
			act("is woken inside a message", func(w *world) { w.woken = false })
		}
		if from.ended {
			act("sees the end", func(w *world) { w.supervisor = top })
		}
	case lends:
		if from.state <= Asked {
			act("has the turn", func(w *world) { w.supervisor, w.told = top, false })
		} else {
			act("waits for the turn", func(w *world) { w.supervisor = parked })
		}
	case parked:
		if from.back {
			act("hears of the turn", func(w *world) { w.supervisor, w.back = lends, false })
		}
		if from.ended && !from.told {
			act("recalls", func(w *world) {
				_, how := x.r.recall(w.state)
				w.change(x.r.recall)
				w.told = true
				if w.supervisor = lends; how == Wake {
					w.supervisor = wakes
				}
			})
		}
	case wakes:
		act("wakes the reader", func(w *world) { w.supervisor, w.woken = lends, true })
	}
}

// read are the steps of the reader.
func (x *walker) read(from world) {
	act := func(event string, happen func(w *world)) { x.add("reader "+event, true, from, happen) }
	leave := func(w *world, hand bool) {
		w.change(func(s State) (State, Act) { return x.r.leave(s, hand) })
		if w.state == Free {
			w.armed, w.used = true, true
		}
	}
	got := func(w *world) { w.reader, w.done, w.handed = top, false, true } // the next Read has another context
	switch from.reader {
	case tries, checks:
		switch {
		case from.reader == checks && !x.r.looksAgain:
			act("does not look", func(w *world) { w.reader = begins })
		case from.unread():
			act("takes a message", func(w *world) {
				if w.inbox > 0 {
					w.inbox--
				} else {
					w.side = -1
				}
				if from.reader == checks {
					leave(w, false)
				}
				got(w)
			})
		case from.reader == checks:
			act("finds nothing again", func(w *world) { w.reader, w.idle = begins, true })
		default:
			act("finds nothing", func(w *world) { w.reader, w.idle = takes, true })
		}
	case takes:
		act("takes the turn", func(w *world) {
			_, how := x.r.take(w.state)
			w.change(x.r.take)
			switch {
			case w.state == Reader:
				w.reader = checks
			case how == Wake:
				w.reader = asks
			default:
				w.reader = waits
			}
		})
	case asks:
		act("wakes the supervisor", func(w *world) { w.woken, w.reader = true, waits })
	case begins:
		if from.done && x.r.asksContext {
			act("does not read", func(w *world) { leave(w, true); w.reader = waits })
		} else {
			act("reads", func(w *world) { w.reader = reads })
		}
	case reads:
		switch {
		case from.net[0] == message:
			act("reads a message", func(w *world) {
				if w.inbox > 0 {
					w.wrong = "a message overtakes another"
				}
				w.next()
				leave(w, w.net[0] != nothing && !x.keeps)
				got(w)
			})
		case from.net[0] == control:
			act("gives the turn back", func(w *world) { leave(w, x.r.handsOn); w.reader = waits })
		case from.woken:
			act("is woken", func(w *world) { w.woken = false; leave(w, true); w.reader = waits })
		}
	case waits:
		if from.token {
			act("is called", func(w *world) { w.token, w.reader = false, tries })
		}
		if from.done {
			act("ends with its context", func(w *world) { w.reader, w.done = top, false })
		}
	}
}

// unread reports whether something is in the inbox.
func (w *world) unread() bool { return w.inbox > 0 || w.side > 0 }
