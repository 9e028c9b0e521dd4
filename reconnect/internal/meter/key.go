package meter

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"
)

// Key says whose measurements these are: connections with the same Key are measured together.
type Key struct {
	Name    string // the value of the label name
	Address string // the host that the connections dial; empty: it is not known, or there are several
	Port    int    // its port; 0: it is not known
}

func (k Key) compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Name, other.Name), cmp.Compare(k.Address, other.Address), cmp.Compare(k.Port, other.Port))
}

// serverOf returns the host and the port of an endpoint, which is a URL or host:port. If the endpoint is
// a list, there is no host: nobody says which of them is dialed.
func serverOf(endpoint string) (address string, port int) {
	if strings.Contains(endpoint, ",") {
		return "", 0
	}
	if !strings.Contains(endpoint, "://") {
		endpoint = "tcp://" + endpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", 0
	}
	port, _ = strconv.Atoi(cmp.Or(u.Port(), defaultPorts[u.Scheme]))
	return strings.ToValidUTF8(u.Hostname(), "?"), port
}

var defaultPorts = map[string]string{"ws": "80", "wss": "443", "http": "80", "https": "443"}
