package handover

import "github.com/redial-go/redial/internal/walk"

// steps returns all that can happen in w. A free step is an act of a supervisor, or of a timer.
func (w world) steps(r rules) []walk.Step[world] {
	s := &steps{w: w, r: r}
	if w.stopped {
		if w.next == nextEnding { // it has nothing to do any more
			s.nextActs()
		}
		if w.old == oldLeaves {
			s.oldActs()
		}
		return s.list
	}
	s.outside()
	s.oldActs()
	s.nextActs()
	return s.list
}

type steps struct {
	w    world
	r    rules
	list []walk.Step[world]
}

// add adds what happens from outside.
func (s *steps) add(event string, happen func(w *world)) {
	after := s.w
	happen(&after)
	s.list = append(s.list, walk.Step[world]{Event: event, State: after})
}

// act adds what happens by itself.
func (s *steps) act(event string, happen func(w *world)) {
	s.add(event, happen)
	s.list[len(s.list)-1].Free = true
}

// outside adds what timers, peers and the user do.
func (s *steps) outside() {
	w, r := s.w, s.r
	if w.slot && w.m.stage == due {
		for how := byUs; how <= lastLink; how++ { // only BreakFirst closes; the link may be lost just before
			s.act("due", func(w *world) { w.begin(r, how) })
		}
	}
	if w.drain {
		s.act("drain is over", func(w *world) { w.drain = false; w.partOld(byUs) })
		s.act("drain is over while nobody reads", func(w *world) { w.drain = false; w.partOld(unread) })
	}
	if w.oldLink == open && w.old <= oldReads {
		s.add("old: peer closes", func(w *world) { w.oldLink = byPeer })
		s.add("old: peer closes, and nobody reads that", func(w *world) { w.oldLink = byPeerUnread })
		s.add("old: breaks", func(w *world) { w.oldLink = broken })
		s.add("old: is cut while nobody reads", func(w *world) { w.oldLink = brokenUnread })
		s.add("old: message", func(w *world) {
			if w.stream != readsOld {
				w.wrong = "a message of the old session came after its seam"
			}
		})
	}
	if w.nextLink == open {
		s.add("next: breaks", func(w *world) { w.nextLink = broken })
	}
	if left := w.leader == nextLeads && w.old >= oldLeaves && w.next == nextReads && w.nextLink == open ||
		w.old <= oldReads && w.oldLink == open && (w.next == nextNone || w.next >= nextEnding); left && !w.slot && !w.closed {
		s.add("rotate again", func(w *world) { *w = w.again() })
	}
	if !w.leaving && !w.closed {
		s.add("shutdown", func(w *world) {
			w.leaving = true
			if w.slot && w.m.Leads() {
				w.partOld(byUs)
			}
		})
	}
	if !w.closed {
		s.add("close", func(w *world) {
			w.close()
		})
	}
}

// close ends the life of the Conn, which cuts the sessions.
func (w *world) close() {
	w.closed, w.cancel, w.drain = true, true, false // the timer finds nothing to close
	for _, l := range [...]*link{&w.oldLink, &w.nextLink} {
		if *l == open {
			*l = broken
		}
	}
}

// again is the world of the next handover. Its old session is the one that is left.
func (w *world) again() world {
	n := newWorld(w.overlap)
	n.leaving, n.closed, n.cancel = w.leaving, w.closed, w.closed
	return n
}

func (w *world) begin(r rules, how link) {
	ending := w.oldLink != open || w.leaving
	switch r.begin(&w.m, ending) {
	case BeginDial:
		w.begun, w.next = true, nextDials
	case BeginBreak:
		w.begun = true
		w.partOld(how)
	case BeginNothing:
		return
	}
	if ending {
		w.wrong = "a handover began although the old session is lost"
	}
}

// partOld closes the old session, unless it has ended.
func (w *world) partOld(how link) {
	if w.oldLink == open {
		w.oldLink = how
	}
}

// oldActs adds what the old supervisor does next.
func (s *steps) oldActs() {
	w, r := s.w, s.r
	switch w.old {
	case oldReady, oldReads, oldOpens, oldSeam, oldGives, oldDials: // OnSession, OnMessage, OnSeam, or a hook
		s.add("old: a callback ends the goroutine", func(w *world) {
			if w.old == oldGives {
				w.released, w.passed = true, 0 // what it was giving is lost
			}
			w.old, w.oldSide, w.seamless = oldEnds, false, true
			w.close()
		})
	}
	switch {
	case w.old == oldReady:
		s.act("old: settles", func(w *world) {
			w.old = oldReads
			w.bridged(r)
		})
	case w.old == oldReads && w.oldLink != open:
		s.act("old: session is lost", func(w *world) { w.loseOld(r) })
	case w.old == oldSeam:
		s.act("old: seam", func(w *world) {
			w.old = oldJudged
			if w.oldSide && w.overlap != BreakFirst {
				w.old = oldGives
			}
			w.oldSide, w.missing, w.full, w.overlaps, w.resumed = false, false, false, false, false // what the seam says
			if w.stream != readsOld {
				w.wrong = "the old session has two seams, or its seam comes too late"
			}
			w.stream = gotSeam
		})
	case w.old == oldGives && w.passed > 0:
		s.act("old: gives the held messages", func(w *world) { w.passed, w.stream = 0, gotNext })
	case w.old == oldGives:
		s.act("old: releases", func(w *world) {
			if r.release(&w.m, int(w.held)) {
				w.old, w.released = oldJudged, true
			} else {
				w.passed, w.held = w.held, 0
			}
		})
	case w.old == oldJudged && w.closed:
		s.act("old: ends with the Conn", func(w *world) { w.old = oldEnds })
	case w.old == oldJudged:
		s.act("old: may redial", func(w *world) { w.judgeOld(r, false) })
		s.act("old: may not redial", func(w *world) { w.judgeOld(r, true) })
	case w.old == oldAwaits && w.joined:
		s.act("old: goes on alone", func(w *world) {
			if w.old = oldDials; w.stop {
				w.old = oldEnds
			}
		})
	case w.old == oldDials && w.closed:
		s.act("old: stops dialing", func(w *world) { w.old = oldEnds })
	case w.old == oldDials && w.slot:
		s.add("old: dial is answered", func(w *world) {
			w.old, w.oldLink, w.stream = oldOpens, open, readsOld
			if !r.planned(&w.m) {
				w.wrong = "the session of a handover is not said to be planned"
			}
		})
		s.add("old: dial fails", func(w *world) { w.bridged(r) })
	case w.old == oldOpens:
		s.act("old: next session is ready", func(w *world) { w.old = oldReady })
		for how := byUs; how <= lastLink; how++ {
			s.add("old: next session is refused", func(w *world) { w.refuse(r, how) })
		}
	case w.old == oldEnds:
		s.act("old: supervisor ends", func(w *world) { w.endOld(r) })
	case w.old == oldReports:
		s.act("old: reports", func(w *world) {
			w.old, w.slot, w.stopped = oldLeaves, false, w.stop
			w.reports++
		})
	case w.old == oldLeaves:
		s.act("old: is gone", func(w *world) { w.old, w.released = oldGone, true })
	case w.old == oldJoins && w.joined:
		s.act("old: ends the Conn", func(w *world) { w.old, w.slot, w.stopped = oldGone, false, true })
	}
}

// bridged is the old supervisor's report that a session of it is ready, or could not be made.
func (w *world) bridged(r rules) {
	if w.slot && r.bridged(&w.m) {
		w.slot = false
		w.reports++
	}
}

// refuse is the loss of a session of the old supervisor that was not ready yet.
func (w *world) refuse(r rules, l link) {
	how, unheard := l.ending()
	if w.slot && r.oldLost(&w.m, how, unheard) {
		w.wrong = "a session that was not ready is said to overlap"
	}
	w.bridged(r)
	w.old, w.oldLink = oldDials, none
}

// ending is what the old supervisor says of a link that is lost.
func (l link) ending() (how Ending, unheard bool) {
	switch l {
	case byUs, unread:
		return EndedByUs, l == unread
	case byPeer, byPeerUnread:
		return EndedByPeer, l == byPeerUnread
	}
	return EndedBroken, l == brokenUnread
}

func (w *world) loseOld(r rules) {
	w.old, w.oldSide, w.drain = oldSeam, w.slot, false
	if !w.slot {
		return
	}
	how, unheard := w.oldLink.ending()
	w.oldLink = broken // how it ended makes no difference any more
	overlapped := r.oldLost(&w.m, how, unheard)
	w.lost = !overlapped
	w.missing = how == EndedBroken || unheard || how == EndedByPeer && w.behind || w.full
	w.overlaps = overlapped && w.m.Overlapped()
}

func (w *world) judgeOld(r rules, stop bool) {
	w.stop = stop
	heir := HeirOld
	if w.slot {
		heir = r.oldEnded(&w.m, stop)
	}
	switch heir {
	case HeirOld:
		if w.old = oldDials; stop {
			w.old = oldEnds
		} else if w.overlap != BreakFirst {
			w.slot = false
		} else if !w.begun {
			w.slot = false
		}
	case HeirOldAlone:
		w.old, w.cancel = oldAwaits, true
	case HeirNext:
		w.old = oldEnds
	case HeirNextLeads:
		if w.next == nextRests {
			w.wrong = "the redial is a dial that rests"
		}
		w.old, w.leader = oldEnds, nextLeads
		w.takes++
	}
	if w.old == oldEnds && !stop && w.leader == oldLeads {
		w.wrong = "nobody redials"
	}
}

func (w *world) endOld(r rules) {
	done := OldWasLast
	if w.slot {
		done = r.oldDone(&w.m)
	}
	switch done {
	case OldReplaced, OldBroke:
		w.old, w.stop = oldReports, done == OldBroke
	case OldAwaits:
		w.old, w.cancel = oldJoins, true
	case OldWasLast:
		w.old, w.slot, w.stopped = oldGone, false, true
	}
}

// nextActs adds what the next supervisor does next.
func (s *steps) nextActs() {
	w, r := s.w, s.r
	switch w.next {
	case nextDials, nextOpens, nextReads, nextSeam: // OnSession, OnMessage, OnSeam, or a hook
		s.add("next: a callback ends the goroutine", func(w *world) {
			w.next = nextEnds
			w.close()
		})
	}
	switch w.next {
	case nextDials:
		if w.cancel {
			s.act("next: stops dialing", func(w *world) { w.next = nextEnds })
		}
		s.add("next: dial is answered", func(w *world) {
			w.next, w.nextLink, w.nextSide = nextOpens, open, w.slot
			if r.planned(&w.m) && w.lost {
				w.wrong = "a session is said to be planned, and replaces one that has died"
			}
		})
		s.add("next: dial fails", func(w *world) { w.rest(r) })
		s.add("next: dial fails for good", func(w *world) { w.next = nextEnds })
	case nextRests:
		if w.cancel {
			s.act("next: stops waiting", func(w *world) { w.next = nextEnds })
		}
		s.add("next: another wait begins, for a login", func(w *world) {
			r.planned(&w.m) // for the hook that reports the wait
			w.rest(r)
		})
		s.act("next: wait is over", func(w *world) {
			if w.slot {
				r.rest(&w.m, false)
			}
			w.next = nextDials // which ends it, if it is cancelled
		})
	case nextOpens, nextStuck, nextReads, nextBlocked:
		s.nextSession()
	case nextSeam, nextForget:
		if w.released {
			s.act("next: seam", func(w *world) { w.loseNext(r) })
		}
	case nextEnds:
		s.act("next: supervisor ends", func(w *world) {
			switch {
			case !w.slot: // it is alone
				w.next, w.stopped = nextGone, true
			case r.nextDone(&w.m):
				w.next = nextJoins
				w.partOld(byUs)
			default:
				w.next = nextReports
			}
		})
	case nextReports:
		s.act("next: reports", func(w *world) {
			w.next, w.slot = nextEnding, false
			w.reports++
		})
	case nextEnding:
		s.act("next: is gone", func(w *world) { w.next, w.joined = nextGone, true })
	case nextJoins:
		if w.old == oldGone {
			s.act("next: ends the Conn", func(w *world) { w.next, w.stopped = nextGone, true })
			s.act("next: ends the Conn, which has another handover", func(w *world) {
				*w = w.again()
				w.old, w.oldLink = oldEnds, broken
			})
		}
	}
}

// nextSession adds what happens to a session of the next supervisor.
func (s *steps) nextSession() {
	w, r := s.w, s.r
	if w.cancel && w.nextLink == open { // but something else may happen before
		s.act("next: session is cut", func(w *world) { w.nextLink = broken })
	}
	if w.nextLink != open {
		s.act("next: session is lost", func(w *world) { w.endNext(r, w.next >= nextReads) })
		return
	}
	switch w.next {
	case nextOpens:
		if !w.closed {
			for _, how := range []link{byUs, unread} {
				s.add("next: delivers", func(w *world) {
					if w.message(r, how); w.next == nextBlocked {
						w.next = nextStuck
					}
				})
			}
		}
		for _, behind := range []bool{false, true} {
			s.act("next: ready", func(w *world) { w.readyNext(r, false, behind) })
			s.act("next: ready, and has resumed the stream", func(w *world) { w.readyNext(r, true, behind) })
		}
	case nextReads:
		if w.closed {
			return // it reads no more
		}
		s.add("next: message", func(w *world) { w.message(r, unread) })
		s.add("next: message, and the old session is read to its end", func(w *world) { w.message(r, byUs) })
	case nextStuck:
		if w.released {
			s.act("next: opens on", func(w *world) { w.next = nextOpens })
		}
	case nextBlocked:
		if w.released {
			s.act("next: reads on", func(w *world) { w.next = nextReads })
		}
	}
}

func (w *world) readyNext(r rules, resumed, behind bool) {
	first := !w.nextWas
	lead := LeadKeeps // it is alone
	if w.nextSide {
		lead = r.nextReady(&w.m, resumed, behind)
	}
	switch lead {
	case LeadRefused:
		w.nextLink = byUs
		return
	case LeadTakes:
		w.leader, w.drain, w.behind = nextLeads, true, behind
		w.takes++
	}
	if w.leader != nextLeads {
		w.wrong = "a session is ready, and its supervisor does not lead"
	}
	w.next, w.nextWas = nextReads, true
	if first {
		w.resumed = resumed
	}
}

// message is a message of the next session. If no more can be held, the old session ends like that.
func (w *world) message(r rules, how link) {
	switch {
	case w.nextSide && r.holds(&w.m):
		if w.held++; w.held < mostHeld {
			return
		}
		w.next, w.full = nextBlocked, true
		if r.heldFull(&w.m) {
			if w.old == oldGone {
				w.wrong = "a session whose supervisor has ended is cut"
			}
			w.partOld(how)
		}
	case w.held+w.passed > 0:
		w.wrong = "a message overtakes those that are held"
	case w.stream == readsOld && w.overlap == Hold, w.stream == readsOld && w.lost:
		w.wrong = "a message of the next session came before the seam"
	case w.stream == gotSeam:
		w.stream = gotNext
	}
}

// endNext is the loss of a session of the next supervisor.
func (w *world) endNext(r rules, ready bool) {
	w.nextSide = false
	loss := LossForget
	if w.slot {
		loss = r.nextLost(&w.m, ready)
	}
	switch {
	case loss == LossAwait:
		w.partOld(byUs)
		w.next = nextSeam
	case loss == LossWait:
		w.next = nextForget
	case ready && w.held > 0 && !w.seamless:
		w.wrong = "messages of a session that was ready were dropped"
	case ready && w.stream == readsOld && !w.seamless:
		w.wrong = "the seam of the next session came before that of the old one"
	case w.passed > 0:
		w.wrong = "the seam of the next session came before its messages"
	default:
		w.held = 0
		w.loseNext(r)
	}
}

// loseNext goes on after the seam of a session of the next supervisor.
func (w *world) loseNext(r rules) {
	w.nextLink = none
	if w.next = nextEnds; !w.cancel {
		w.rest(r)
	}
}

// rest begins a wait before the next dial.
func (w *world) rest(r rules) {
	if w.slot {
		r.rest(&w.m, true)
	}
	w.next = nextRests
}
