module github.com/spanstatsd/spanstatsd/test/agent

go 1.26.0

replace github.com/spanstatsd/spanstatsd => ../..

require (
	github.com/DataDog/datadog-agent/comp/trace/compression/impl-gzip v0.85.4
	github.com/DataDog/datadog-agent/pkg/obfuscate v0.85.4
	github.com/DataDog/datadog-agent/pkg/proto v0.85.4
	github.com/DataDog/datadog-agent/pkg/trace v0.85.4
	github.com/DataDog/datadog-agent/pkg/trace/stats v0.85.4
	github.com/DataDog/datadog-agent/pkg/trace/traceutil v0.85.4
	github.com/DataDog/datadog-go/v5 v5.9.1
	github.com/DataDog/dd-trace-go/contrib/net/http/v2 v2.12.0
	github.com/DataDog/dd-trace-go/v2 v2.12.0
	github.com/DataDog/sketches-go v1.4.8
	github.com/spanstatsd/spanstatsd v0.0.0
	github.com/tinylib/msgp v1.6.4
	github.com/vmihailenco/msgpack/v5 v5.4.1
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/DataDog/datadog-agent/comp/core/tagger/origindetection v0.85.4 // indirect
	github.com/DataDog/datadog-agent/comp/core/telemetry v0.85.4 // indirect
	github.com/DataDog/datadog-agent/comp/trace/compression/def v0.85.4 // indirect
	github.com/DataDog/datadog-agent/pkg/api v0.85.4 // indirect
	github.com/DataDog/datadog-agent/pkg/config/env v0.85.4 // indirect
	github.com/DataDog/datadog-agent/pkg/config/model v0.85.4 // indirect
	github.com/DataDog/datadog-agent/pkg/opentelemetry-mapping-go/otlp/attributes v0.85.4
	github.com/DataDog/datadog-agent/pkg/remoteconfig/state v0.85.4 // indirect
	github.com/DataDog/datadog-agent/pkg/template v0.85.4 // indirect
	github.com/DataDog/datadog-agent/pkg/trace/log v0.85.4 // indirect
	github.com/DataDog/datadog-agent/pkg/util/cgroups v0.85.4 // indirect
	github.com/DataDog/datadog-agent/pkg/util/filesystem v0.85.4 // indirect
	github.com/DataDog/datadog-agent/pkg/util/log v0.85.4 // indirect
	github.com/DataDog/datadog-agent/pkg/util/pointer v0.85.4 // indirect
	github.com/DataDog/datadog-agent/pkg/util/scrubber v0.85.4 // indirect
	github.com/DataDog/datadog-agent/pkg/util/system v0.85.4 // indirect
	github.com/DataDog/datadog-agent/pkg/util/winutil v0.85.4 // indirect
	github.com/DataDog/datadog-agent/pkg/version v0.85.4 // indirect
	github.com/DataDog/go-acl v1.0.1 // indirect
	github.com/DataDog/go-libddwaf/v5 v5.0.0 // indirect
	github.com/DataDog/go-runtime-metrics-internal v0.0.4-0.20260217080614-b0f4edc38a6d // indirect
	github.com/DataDog/go-sqllexer v0.2.4 // indirect
	github.com/DataDog/go-tuf v1.1.1-0.5.2 // indirect
	github.com/Microsoft/go-winio v0.6.2 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/cihub/seelog v0.0.0-20170130134532-f561c5e57575 // indirect
	github.com/coreos/go-systemd/v22 v22.7.0 // indirect
	github.com/davecgh/go-spew v1.1.2-0.20180830191138-d8f796af33cc // indirect
	github.com/dustin/go-humanize v1.1.0 // indirect
	github.com/ebitengine/purego v0.11.1 // indirect
	github.com/go-ole/go-ole v1.3.0 // indirect
	github.com/gofrs/flock v0.13.1 // indirect
	github.com/golang-jwt/jwt/v5 v5.3.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/hashicorp/go-version v1.9.0 // indirect
	github.com/jpillora/backoff v1.0.0 // indirect
	github.com/json-iterator/go v1.1.12 // indirect
	github.com/klauspost/compress v1.20.1 // indirect
	github.com/klauspost/cpuid/v2 v2.3.0 // indirect
	github.com/linkdata/deadlock v0.5.5 // indirect
	github.com/lufia/plan9stats v0.0.0-20260802145828-341c2f0c90b5 // indirect
	github.com/mdlayher/socket v0.7.0 // indirect
	github.com/mdlayher/vsock v1.3.0 // indirect
	github.com/minio/simdjson-go v0.4.5 // indirect
	github.com/modern-go/concurrent v0.0.0-20180306012644-bacd9c7ef1dd // indirect
	github.com/modern-go/reflect2 v1.0.3-0.20250322232337-35a7c28c31ee // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/mwitkow/go-conntrack v0.0.0-20190716064945-2f068394615f // indirect
	github.com/open-telemetry/opentelemetry-collector-contrib/pkg/sampling v0.159.0 // indirect
	github.com/outcaste-io/ristretto v0.2.3 // indirect
	github.com/petermattis/goid v0.0.0-20260226131333-17d1149c6ac6 // indirect
	github.com/philhofer/fwd v1.2.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/planetscale/vtprotobuf v0.6.1-0.20240319094008-0393e58bdf10 // indirect
	github.com/power-devops/perfstat v0.0.0-20260805114148-88456608a4f6 // indirect
	github.com/prometheus/client_golang v1.25.0 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/exporter-toolkit v0.20.0 // indirect
	github.com/prometheus/procfs v0.22.0 // indirect
	github.com/puzpuzpuz/xsync/v4 v4.5.0 // indirect
	github.com/secure-systems-lab/go-securesystemslib v0.11.1 // indirect
	github.com/shirou/gopsutil/v4 v4.26.9 // indirect
	github.com/spanstatsd/spanstatsd/lab v0.0.0
	github.com/tklauser/go-sysconf v0.4.0 // indirect
	github.com/tklauser/numcpus v0.12.0 // indirect
	github.com/trailofbits/go-mutexasserts v0.0.0-20250514102930-c1f3d2e37561 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	github.com/yusufpapurcu/wmi v1.2.4 // indirect
	go.opentelemetry.io/collector/component v1.65.0
	go.opentelemetry.io/collector/featuregate v1.65.0 // indirect
	go.opentelemetry.io/collector/pdata v1.65.0
	go.opentelemetry.io/collector/pdata/pprofile v0.159.0 // indirect
	go.opentelemetry.io/otel v1.46.0 // indirect
	go.opentelemetry.io/otel/metric v1.46.0
	go.opentelemetry.io/otel/trace v1.46.0 // indirect
	go.opentelemetry.io/proto/otlp v1.11.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.uber.org/mock v0.6.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	go.uber.org/zap v1.28.0 // indirect
	go.yaml.in/yaml/v2 v2.4.4 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/exp v0.0.0-20260813180055-c1d0aacb2297 // indirect
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/oauth2 v0.37.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/time v0.15.0 // indirect
	golang.org/x/xerrors v0.0.0-20240903120638-7835f813f4da // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260819154853-08b0e4226688 // indirect
	google.golang.org/grpc v1.84.0
)

replace github.com/spanstatsd/spanstatsd/lab => ../../lab
