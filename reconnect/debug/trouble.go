package debug

// trouble is the condition of a Conn, the worst first.
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

// countsInfo is the record counts of the JSON.
type countsInfo struct {
	All      int `json:"all"`
	Ended    int `json:"ended"`
	Away     int `json:"away"`
	Flapping int `json:"flapping"`
	Ready    int `json:"ready"`
	Closed   int `json:"closed"`
}

// add counts one.
func (c *countsInfo) add(t trouble) {
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
