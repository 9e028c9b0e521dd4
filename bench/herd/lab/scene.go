package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/pick"
)

// Scene is how the server goes, and what dials meet until it is back for good.
type Scene uint8

// The scenes. The server is always killed, so that every connection is lost.
const (
	Restart Scene = iota // dials are refused for the outage
	Hang                 // for the outage connections are accepted, and what was accepted is never answered, also not afterwards
	Flap                 // it comes back after the outage, serves for as long, and is killed again, Flaps times
	Rolling              // several servers, of which each is killed Every after the one before, and is back after the outage
	Half                 // several servers are killed and back at once, but from then on the first half of them accept and never answer
)

var scenes = []string{"restart", "hang", "flap", "rolling", "half"}

// Scenes returns all scenes.
func Scenes() []Scene { return pick.Kinds[Scene](scenes) }

// String returns the name of the scene.
func (s Scene) String() string { return pick.Kind(scenes, s) }

// The defaults, and the most that there may be.
const (
	defaultFlaps   = 5
	defaultServers = 4
	defaultEvery   = 10 * time.Second
	mostFlaps      = 50
	mostServers    = 20
)

// forever is longer than any run.
const forever = 1000 * time.Hour

// shortLived reports whether sessions may be lost soon after they began, so that it matters
// which of them count as stable.
func (s Scene) shortLived() bool { return s == Flap || s == Rolling }

// many reports whether there are several servers.
func (s Scene) many() bool { return s == Rolling || s == Half }

// validateScene returns an error that names what is wrong with the scene.
func (h *Herd) validateScene() error {
	switch {
	case int(h.Scene) >= len(scenes):
		return fmt.Errorf("there is no scene %d", h.Scene)
	case h.URL != "" && h.Scene != Restart:
		return errors.New("a server of yours has no scene: you restart it yourself")
	case h.Flaps < 0 || h.Flaps > mostFlaps:
		return fmt.Errorf("a server can flap up to %d times, not %d", mostFlaps, h.Flaps)
	case h.Servers < 0 || h.Servers > mostServers || h.Scene == Half && h.Servers == 1:
		return fmt.Errorf("there can be 2 to %d servers, not %d", mostServers, h.Servers)
	case h.Every < 0 || h.Every > 0 && h.Every < h.Outage:
		return fmt.Errorf("servers that are away for %v cannot be restarted %v apart", h.Outage, h.Every)
	}
	return nil
}

// withDefaults returns h with the defaults of its scene.
func (h Herd) withDefaults() Herd {
	if h.URL == "" {
		h.Watch = cmp.Or(h.Watch, defaultWatch)
	}
	h.Flaps = cmp.Or(h.Flaps, defaultFlaps)
	h.Every = cmp.Or(h.Every, max(defaultEvery, h.Outage))
	h.Servers = cmp.Or(h.Servers, defaultServers)
	if !h.Scene.many() {
		h.Servers = 1
	}
	return h
}

// step is a moment of a scene: a server is killed, or another process takes its place.
type step struct {
	at     time.Duration // from the first
	server int
	up     bool
	hang   time.Duration // for so long the new one does not answer
}

// steps returns the scene, in order of time.
func (h *Herd) steps() (all []step) {
	add := func(at time.Duration, server int, up bool, hang time.Duration) {
		all = append(all, step{at, server, up, hang})
	}
	switch h.Scene {
	case Hang:
		add(0, 0, false, 0)
		add(0, 0, true, h.Outage)
	case Flap:
		for i := range 2 * h.Flaps {
			add(time.Duration(i)*h.Outage, 0, i%2 == 1, 0)
		}
	case Rolling:
		for k := range h.Servers {
			at := time.Duration(k) * h.Every
			add(at, k, false, 0)
			add(at+h.Outage, k, true, 0)
		}
	case Half:
		for k := range h.Servers {
			add(0, k, false, 0)
		}
		for k := range h.Servers {
			hang := time.Duration(0)
			if k < h.Servers/2 {
				hang = forever
			}
			add(0, k, true, hang)
		}
	default:
		add(0, 0, false, 0)
		add(h.Outage, 0, true, 0)
	}
	return all
}

// Simulated returns the same herd for the simulator. What the kernel's backlog cannot take
// is dropped there; with Reject, which resets what is too much, 100 ms of work may wait.
func (h Herd) Simulated() fleet.Herd {
	h = h.withDefaults()
	h.Client.Credit = 0 // a reconnect.Conn has the default, whatever its policy
	s := fleet.Herd{N: h.N, Client: h.Client, Outage: fleet.Outage{Length: h.Outage}}
	s.Server = fleet.Server{Capacity: h.Capacity, Queue: fleet.Drop, Backlog: h.waiting(), Count: h.Servers}
	if h.Reject {
		s.Server.Queue, s.Server.Backlog = fleet.Reject, max(int(h.Capacity/10), 1)
	}
	switch h.Scene {
	case Hang:
		s.Outage.Down = fleet.Swallowed
	case Flap:
		for i := range h.Flaps {
			if i > 0 {
				s.Outage.Spells = append(s.Outage.Spells, fleet.Spell{Down: fleet.Up, Length: h.Outage})
			}
			s.Outage.Spells = append(s.Outage.Spells, fleet.Spell{Down: fleet.Refused, Length: h.Outage})
		}
	case Rolling:
		s.Server.Rolling = h.Every
	case Half:
		s.Outage.Length, s.Server.Hung = 0, h.Servers/2
	}
	s.Watch = s.Return() + h.Watch
	return s
}

// Simulate is [Run] by the simulator. Of Bins it knows Dials and Up; TimedOut and PeakIn are 0.
func Simulate(ctx context.Context, h Herd, seed uint64) (*Result, error) {
	if err := h.Validate(); err != nil {
		return nil, err
	}
	s := h.Simulated()
	s.Seed = seed
	r, err := fleet.Run(ctx, s)
	if err != nil {
		return nil, err
	}
	y := &Result{
		Client: h.Client.Name, Scene: h.Scene, N: h.N, Outage: s.Return(), T50: r.T50, T99: r.T99, T100: r.T100, Watched: h.withDefaults().Watch, Up: r.Up,
		Peak: r.Peak, Dials: r.Dials, Refused: r.Refused, Wasted: r.Wasted, UpShare: r.UpShare, Away: r.Away,
	}
	if h.Scene != Rolling {
		y.Ideal = r.Ideal
	}
	for i, n := range r.DialsPerBin {
		y.Bins = append(y.Bins, Bin{Dials: int(n), Up: int(r.UpPerBin[i])})
	}
	return y, nil
}
