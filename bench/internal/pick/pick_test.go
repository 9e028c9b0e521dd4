package pick_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/internal/pick"
)

func TestOneHasTheName(t *testing.T) {
	all := []string{"a", "b"}
	x, err := pick.One("letter", "b", all, pick.Itself)
	require.NoError(t, err)
	require.Equal(t, "b", x)
	_, err = pick.One("letter", "c", all, pick.Itself)
	require.EqualError(t, err, `there is no letter "c": there are a, b`)
	_, err = pick.One("policy", "gprc", []string{"redial", "grpc"}, pick.Itself)
	require.EqualError(t, err, `there is no policy "gprc" (is it "grpc"?): there are redial, grpc`)
}

func TestAKindHasItsName(t *testing.T) {
	type kind uint8
	names := []string{"a", "b"}
	require.Equal(t, []kind{0, 1}, pick.Kinds[kind](names))
	require.Equal(t, []string{"b", "kind 2"}, []string{pick.Kind(names, kind(1)), pick.Kind(names, kind(2))})
}
