package numeric

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type options struct {
	Count int
	Wait  time.Duration
	Size  uint64
	Share float64
	Kind  uint8
	Name  string
	Inner struct{ N int }
	Other *struct{ N int }
	embedded
}

type embedded struct{ Deep int }

func TestWithoutRowNamesOptionsThatNoTableHas(t *testing.T) {
	of := map[string]reflect.Type{"Options.": reflect.TypeFor[options]()}
	all := []string{"Options.Count", "Options.Wait", "Options.Size", "Options.Share", "Options.Inner.N"}
	require.Equal(t, all, WithoutRow(of))
	require.Equal(t, all[3:], WithoutRow(of,
		map[string]int{"Options.Count": 1},
		[]string{"Options.Wait"},
		[]struct {
			name string
			n    int
		}{{"Options.Size", 1}},
	))
	require.Empty(t, WithoutRow(of, all))
}

func TestWithoutRowNamesTypeWithoutNumbers(t *testing.T) {
	type named struct{ Name string }
	of := map[string]reflect.Type{"": reflect.TypeFor[named]()}
	require.Equal(t, []string{"numeric.named"}, WithoutRow(of))
}
