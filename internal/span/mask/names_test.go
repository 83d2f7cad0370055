package mask_test

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// The test uses names of operations that contain several numbers. Names that programmers write are words,
// however many versions they contain.
func TestNames_AreNotMasked(t *testing.T) {
	file, err := os.ReadFile("testdata/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := kubernetesOperations()
	for line := range strings.Lines(string(file)) {
		if !strings.HasPrefix(line, "#") {
			names = append(names, strings.Fields(line)...)
		}
	}
	names = append(names, conversions()...)
	if len(names) < 10_000 {
		t.Fatalf("there are only %d names", len(names))
	}
	wrong := 0
	for _, name := range names {
		for _, text := range []string{name, "POST /api/" + name, "shop.Service/" + name} {
			if got := masked(text); got != text {
				if wrong++; wrong <= 20 {
					t.Errorf("%q became %q", text, got)
				}
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d texts of %d names are masked", wrong, len(names))
	}
}

// kubernetesOperations returns operation IDs as in the OpenAPI document of the Kubernetes API server, and as in clients
// that add a version.
func kubernetesOperations() (names []string) {
	for _, verb := range strings.Fields("read list create replace patch delete deleteCollection watch connectPost") {
		for _, group := range strings.Fields(`Core Apps Batch Autoscaling Policy Networking Storage
			RbacAuthorization AdmissionregistrationK8s FlowcontrolApiserver Coordination Discovery Resource`) {
			for _, version := range strings.Fields("V1 V2 V1beta1 V1beta3 V2beta2 V1alpha1") {
				for _, kind := range strings.Fields(`NamespacedPodStatus NamespacedDeploymentScale
					ClusterRoleBinding CSIDriver DeploymentForAllNamespaces NamespacedIPv4Address
					FlowSchemaV2 PriorityLevelConfigurationStatus NamespacedService2 IPAddress
					NamespacedHorizontalPodAutoscaler TokenReview NetworkPolicyList ENIConfig NodeProxy`) {
					names = append(names, verb+group+version+kind)
				}
			}
		}
	}
	return names
}

// conversions returns names of functions that convert between two formats.
func conversions() (names []string) {
	for _, formats := range []string{
		"UTF8 UTF16 UTF32 UCS2 Latin1 ISO8859", "mp3 mp4 h264 h265 av1 vp9 webm2", "i18n l10n a11y",
		"IPv4 IPv6", "X509 Pkcs7 Pkcs12 Pkcs8", "md5 sha1 sha256 crc32 base64", "int8 int16 int32 uint64 float64",
		"OAuth1 OAuth2", "V1 V2 V1beta1", "Http1 Http2 Http3", "step1 step2", "amd64 arm64", "B2B B2C P2P",
	} {
		all := strings.Fields(formats)
		for _, from := range all {
			for _, to := range all {
				to = strings.ToUpper(to[:1]) + to[1:]
				if strings.EqualFold(from, to) {
					continue
				}
				names = append(names, from+"To"+to, "get"+strings.ToUpper(from[:1])+from[1:]+"And"+to)
			}
		}
	}
	return names
}

// The scale of an image is not the host of an e-mail address.
func TestImages_ScaleIsNotMasked(t *testing.T) {
	for _, name := range []string{"logo", "hero", "icon-60x60", "app_icon", "Icon-App-20x20"} {
		for _, scale := range []string{"@2x", "@3x", "@1.5x", "@2x~ipad", "%402x", "@2x-dark", "@2x.min"} {
			for _, extension := range []string{".png", ".jpg", ".webp", ".svg"} {
				text := "GET /img/" + name + scale + extension
				if got := masked(text); got != text {
					t.Errorf("%q became %q", text, got)
				}
			}
		}
	}
	for _, text := range []string{"a@2xl.com", "bob@163.com", "bob@4x4.de", "x@1.xyz.org"} {
		if got := masked("/users/" + text); got != "/users/{email}" {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// At least the share of each kind that keeps a budget from filling must be masked.
func TestIdentifiers_AreMasked(t *testing.T) {
	const hits = 4000
	rnd := rand.New(rand.NewPCG(47, 13))
	for _, k := range []struct {
		name   string
		length int
		least  float64
	}{
		{"uuid", 0, 1},
		{"hex16", 0, 1},
		{"hex32", 0, 1},
		{"hex64", 0, 1},
		{"email", 0, 1},
		{"jwt", 0, 1},
		{"ksuid", 0, 0.98},
		{"ulid", 0, 0.99},
		{"b62", 12, 0.80},
		{"b62", 16, 0.87},
		{"b62", 22, 0.95},
		{"b62", 32, 0.99},
		{"b64", 11, 0.63},
		{"b64", 22, 0.95},
		{"b64", 43, 0.99},
		{"b36", 16, 0.90},
		{"b36", 25, 0.99},
		{"b36u", 12, 0.90},
	} {
		found := 0
		for range hits {
			text := "GET /sessions/" + makers[k.name](rnd, k.length)
			if masked(text) != text {
				found++
			}
		}
		share := float64(found) / hits
		t.Logf("%s-%d: %.2f %%", k.name, k.length, 100*share)
		if share < k.least {
			t.Errorf("%s of %d bytes: %.2f %% are masked", k.name, k.length, 100*share)
		}
	}
}
