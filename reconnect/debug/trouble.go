package debug

// trouble is what is wrong with a Conn. The worst comes first.
type trouble uint8

const (
	troubleEnded    trouble = iota // it has ended by itself: nothing dials any more
	troubleAway                    // no session is ready
	troubleFlapping                // a session is ready, but several were lost lately
	troubleNone                    // a session is ready
	troubleClosed                  // the program has closed it
)

var troubles = [...]string{"ended", "away", "flapping", "ready", "closed"}

func (t trouble) String() string { return troubles[t] }

// parseTrouble returns the trouble with a name.
func parseTrouble(name string) (trouble, bool) {
	for i, t := range troubles {
		if t == name {
			return trouble(i), true
		}
	}
	return 0, false
}

// Counts are how many Conns are in each condition.
type Counts struct {
	All      int `json:"all"`
	Ended    int `json:"ended"`    // ended by themselves, such as after 410 Gone
	Away     int `json:"away"`     // without a session that is ready
	Flapping int `json:"flapping"` // ready, but 3 sessions or more that were ready were lost within the last 5 minutes
	Ready    int `json:"ready"`    // ready, and not flapping
	Closed   int `json:"closed"`   // closed by the program
}

// add counts one.
func (c *Counts) add(t trouble) {
	c.All++
	switch t {
	case troubleEnded:
		c.Ended++
	case troubleAway:
		c.Away++
	case troubleFlapping:
		c.Flapping++
	case troubleNone:
		c.Ready++
	case troubleClosed:
		c.Closed++
	}
}
