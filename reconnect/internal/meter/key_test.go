package meter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/meter"
)

// place is a dialer that says where it dials.
type place struct {
	*scene
	endpoint string
}

func (p place) Endpoint() string { return p.endpoint }

func TestTheServerIsPartOfTheKeyIfThereIsOne(t *testing.T) {
	for endpoint, key := range map[string]string{
		"wss://feed.example/v1":            "feed@feed.example:443",
		"ws://feed.example/v1":             "feed@feed.example:80",
		"wss://[2001:db8::1]:9443/v1":      "feed@2001:db8::1:9443",
		"tls://feed.example:7000":          "feed@feed.example:7000",
		"feed.example:7000":                "feed@feed.example:7000",
		"wss://a.example, wss://b.example": "feed",
		"wss://a.example,b.example/v1":     "feed",
		"":                                 "feed",
		"%":                                "feed",
		"/run/feed.sock":                   "feed",
		"wss://feed.example:port-that-is-not-a-port": "feed",
	} {
		inBubble(t, func(t *testing.T, s *scene) {
			s.unmeasuredBy(place{s, endpoint}, reconnect.Options{Layers: []*reconnect.Layer{s.m.Layer(meter.Source{Name: "feed"})}})
			s.accept()
			require.Equal(t, 1, s.count(key+" sessions"), endpoint)
		})
	}
}
