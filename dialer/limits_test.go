package dialer

import (
	"context"
	"math"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/backoff"
)

// numbers returns each numeric field of options, those of the structs inside included.
func numbers(options reflect.Value, name string) map[string]reflect.Value {
	found := map[string]reflect.Value{}
	for i := range options.NumField() {
		field := options.Type().Field(i)
		if !field.IsExported() || field.Type.PkgPath() == "net/netip" {
			continue
		}
		switch v := options.Field(i); {
		case v.CanInt() || v.CanUint() || v.CanFloat():
			found[name+field.Name] = v
		case v.Kind() == reflect.Struct:
			for inner, w := range numbers(v, name+field.Name+".") {
				found[inner] = w
			}
		}
	}
	return found
}

// Every number is taken, or refused by name; and a dial with it ends.
func TestEveryNumericOptionIsTakenOrRefusedByName(t *testing.T) {
	for name, options := range map[string]func(*conntest.Network) any{
		"WebSocket": func(n *conntest.Network) any { return &WebSocket{URL: "ws://" + venueAddr, DialContext: n.DialContext} },
		"Framed": func(n *conntest.Network) any {
			return &Framed{Address: venueAddr, Framer: conn.Lines{}, DialContext: n.DialContext}
		},
		"Dialer": func(n *conntest.Network) any {
			return &Dialer{DialOnce: n.DialContext, Policy: backoff.Limit(nil, 1, 0)}
		},
	} {
		fields := numbers(reflect.ValueOf(options(nil)).Elem(), "")
		require.GreaterOrEqual(t, len(fields), 6, name)
		for field, v := range fields {
			for _, n := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64} {
				if v.CanUint() && v.OverflowUint(uint64(n)) {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					network := new(conntest.Network)
					defer conntest.NewServer(network, venueAddr, nil).Close()
					o := options(network)
					v := numbers(reflect.ValueOf(o).Elem(), "")[field]
					if v.CanUint() {
						v.SetUint(uint64(n))
					} else {
						v.SetInt(n)
					}
					if err := o.(interface{ Validate() error }).Validate(); err != nil {
						require.NotZero(t, n, "the default of %s is refused", field)
						require.Regexp(t, lastName(field)+"( is|:)", err.Error())
						return
					}
					for _, fault := range []conntest.Fault{{}, {Hang: true}} {
						network.Fault(venueAddr, fault)
						dialForADay(t, o)
					}
				})
			}
		}
	}
}

// dialForADay dials under a context that ends after a day.
func dialForADay(t *testing.T, o any) {
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
	defer cancel()
	start := time.Now()
	switch d := o.(type) {
	case *Dialer:
		if c, err := d.DialContext(ctx, "tcp", venueAddr); err == nil {
			c.Close()
		}
	case dials:
		if c, err := d.Dial(ctx); err == nil {
			c.CloseNow()
		}
		patience := o.(interface {
			Patience(backoff.Try) time.Duration
		}).Patience
		for _, n := range []time.Duration{0, 1, -1, math.MaxInt64, math.MinInt64} {
			require.Positive(t, patience(backoff.Try{Connect: n, Handshake: n}))
		}
	}
	require.LessOrEqual(t, time.Since(start), 24*time.Hour)
}

func lastName(field string) string {
	for i := len(field) - 1; i >= 0; i-- {
		if field[i] == '.' {
			return field[i+1:]
		}
	}
	return field
}

func TestLimitsTogetherDoNotOverflow(t *testing.T) {
	most := backoff.Try{Connect: math.MaxInt64, Handshake: math.MaxInt64}
	require.Equal(t, time.Duration(math.MaxInt64), (&WebSocket{}).Patience(most))
	require.Equal(t, time.Duration(math.MaxInt64), (&Framed{TLS: tlsDefaults(nil), HandshakeTimeout: 1}).Patience(most))
	require.Equal(t, 45*time.Second, (&WebSocket{}).Patience(backoff.Try{Connect: -1, Handshake: math.MinInt64}))
}
