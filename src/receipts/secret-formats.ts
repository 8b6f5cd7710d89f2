/**
 * The formats of secrets: prefixes, alphabets and lengths as issuers document them and public secret scanners (gitleaks, GitHub
 * secret scanning) check them. Keep each row as exact as the issuer: a loose format would let an agent hide parts of a request
 * from approvers.
 */

/** The characters after the prefix. */
export type Alphabet = "alnum" | "lower" | "upper" | "hex" | "base64" | "base64url" | "dotted" | "path";

export interface SecretFormat {
  /** The kind of secret, as the mask shows it. */
  readonly name: string;
  readonly prefix: string;
  readonly alphabet: Alphabet;
  /** The minimum number of characters after the prefix; the exact number if there is a `second` part. */
  readonly min: number;
  /** The prefix is the place of the secret (a host and path, or a name), so it is shown. */
  readonly isPlace?: true;
  /** A separator and the second part. */
  readonly second?: { readonly sign: string; readonly alphabet: Alphabet; readonly min: number };
}

const of = (name: string, prefix: string, alphabet: Alphabet, min: number): SecretFormat => ({
  name,
  prefix,
  alphabet,
  min,
});

/** One format with several prefixes. */
const each = (name: string, prefixes: readonly string[], alphabet: Alphabet, min: number): readonly SecretFormat[] =>
  prefixes.map((prefix) => of(name, prefix, alphabet, min));

const places = (name: string, prefixes: readonly string[], min: number, alphabet: Alphabet = "path") =>
  prefixes.map((prefix): SecretFormat => ({ ...of(name, prefix, alphabet, min), isPlace: true }));

export const SECRET_FORMATS: readonly SecretFormat[] = [
  // Our own.
  of("Outgate API key", "og_", "alnum", 36),
  of("Standard Webhooks signing secret", "whsec_", "base64", 24),

  // Models.
  of("Anthropic API key", "sk-ant-api03-", "base64url", 80),
  of("Anthropic admin key", "sk-ant-admin01-", "base64url", 80),
  of("Anthropic OAuth token", "sk-ant-oat01-", "base64url", 80),
  of("Anthropic session key", "sk-ant-sid01-", "base64url", 80),
  of("OpenAI project key", "sk-proj-", "base64url", 40),
  of("OpenAI service account key", "sk-svcacct-", "base64url", 40),
  of("OpenAI admin key", "sk-admin-", "base64url", 40),
  of("OpenRouter API key", "sk-or-v1-", "hex", 64),
  of("OpenAI API key", "sk-", "alnum", 32),
  of("Perplexity API key", "pplx-", "alnum", 40),
  of("Groq API key", "gsk_", "alnum", 40),
  of("xAI API key", "xai-", "alnum", 70),
  of("Replicate API token", "r8_", "alnum", 37),
  of("Hugging Face token", "hf_", "alnum", 34),
  of("Hugging Face organization token", "api_org_", "alnum", 34),
  of("LangSmith key", "lsv2_pt_", "hex", 32),
  of("LangSmith service key", "lsv2_sk_", "hex", 32),
  of("Pinecone API key", "pcsk_", "base64url", 40),
  of("Tavily API key", "tvly-", "base64url", 32),
  of("Firecrawl API key", "fc-", "hex", 32),
  of("NVIDIA API key", "nvapi-", "base64url", 60),
  of("Together AI key", "tgp_v1_", "base64url", 43),
  of("Langfuse secret key", "sk-lf-", "base64url", 36),
  of("E2B API key", "e2b_", "hex", 40),
  of("Jina API key", "jina_", "base64url", 60),
  of("Weights & Biases key", "wandb_v1_", "base64url", 40),
  of("ElevenLabs key", "sk_", "hex", 48),
  of("Cursor key", "key_", "hex", 64),

  // Code and packages.
  ...each("GitHub token", ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], "alnum", 36),
  of("GitHub fine-grained token", "github_pat_", "base64url", 82),
  of("GitLab personal token", "glpat-", "dotted", 20),
  of("GitLab trigger token", "glptt-", "hex", 40),
  of("GitLab runner token", "glrt-", "dotted", 20),
  ...each("GitLab token", ["gldt-", "glft-", "glffct-", "glsoat-"], "base64url", 20),
  of("GitLab mail token", "glimt-", "base64url", 25),
  of("GitLab agent token", "glagent-", "base64url", 50),
  of("GitLab OAuth secret", "gloas-", "base64url", 64),
  of("GitLab job token", "glcbt-", "base64url", 20),
  of("GitLab registration token", "GR1348941", "base64url", 20),
  of("Bitbucket app password", "ATBB", "alnum", 32),
  of("Bitbucket Data Center token", "BBDC-", "base64", 40),
  of("Atlassian API token", "ATATT3", "base64url", 60),
  of("Atlassian access token", "ATCTT3xFfGN0", "dotted", 60),
  of("npm token", "npm_", "alnum", 36),
  of("PyPI token", "pypi-AgEIcHlwaS5vcmc", "base64url", 50),
  of("RubyGems key", "rubygems_", "hex", 48),
  of("Clojars token", "CLOJARS_", "lower", 60),
  of("Docker Hub token", "dckr_pat_", "base64url", 27),
  of("Docker Hub organization token", "dckr_oat_", "base64url", 27),
  of("Artifactory key", "AKCp", "alnum", 69),
  of("Artifactory reference token", "cmVmdGtu", "alnum", 56),
  of("NuGet key", "oy2", "lower", 43),
  of("crates.io token", "cio", "alnum", 32),
  of("Sourcegraph token", "sgp_", "hex", 40),
  of("Terraform Cloud token", ".atlasv1.", "base64url", 60),
  of("Pulumi token", "pul-", "hex", 40),
  of("Doppler token", "dp.pt.", "alnum", 40),
  of("Doppler service token", "dp.st.", "dotted", 40),
  of("Infracost key", "ico-", "alnum", 32),
  of("Postman key", "PMAK-", "base64url", 58),
  of("Readme key", "rdme_", "lower", 70),
  of("Prefect key", "pnu_", "alnum", 36),
  of("Linear key", "lin_api_", "alnum", 40),
  of("Linear OAuth token", "lin_oauth_", "hex", 64),
  of("Notion token", "ntn_", "alnum", 43),
  of("Notion integration secret", "secret_", "alnum", 43),
  of("Figma token", "figd_", "base64url", 40),
  { ...of("Airtable token", "pat", "alnum", 14), second: { sign: ".", alphabet: "hex", min: 64 } },
  of("Typeform token", "tfp_", "dotted", 59),
  of("Octopus Deploy key", "API-", "upper", 26),
  of("Buildkite agent token", "bkua_", "hex", 40),
  of("CircleCI token", "CCIPAT_", "base64url", 40),
  of("Snyk token", "snyk_uat.", "dotted", 40),
  ...each("SonarQube token", ["squ_", "sqa_", "sqp_"], "hex", 40),
  of("Apify API token", "apify_api_", "alnum", 36),
  of("Svix token", "testsk_", "base64url", 32),
  ...each("Inngest signing key", ["signkey-prod-", "signkey-test-", "signkey-branch-"], "hex", 64),
  ...each("Trigger.dev key", ["tr_prod_", "tr_dev_", "tr_stg_"], "alnum", 20),
  ...["pat.", "sat."].map((prefix): SecretFormat => ({
    ...of("Harness token", prefix, "base64url", 22),
    second: { sign: ".", alphabet: "dotted", min: 45 },
  })),
  { ...of("ClickUp token", "pk_", "alnum", 8), second: { sign: "_", alphabet: "upper", min: 32 } },

  // Clouds and databases.
  ...each("AWS access key id", ["AKIA", "ASIA", "ABIA", "ACCA"], "upper", 16),
  of("Amazon Bedrock key", "ABSK", "base64", 109),
  ...places("Azure storage key", ["AccountKey="], 86, "base64"),
  ...places("Azure shared access key", ["SharedAccessKey="], 43, "base64"),
  of("Google API key", "AIza", "base64url", 35),
  of("Google OAuth token", "ya29.", "base64url", 20),
  of("Google OAuth secret", "GOCSPX-", "base64url", 28),
  of("Google refresh token", "1//0", "base64url", 30),
  of("Alibaba access key id", "LTAI", "alnum", 16),
  of("Tencent Cloud secret id", "AKID", "alnum", 32),
  of("Yandex Cloud key", "AQVN", "base64url", 35),
  of("Yandex OAuth token", "y0_", "base64url", 55),
  of("Volcengine access key id", "AKLT", "alnum", 43),
  ...each("DigitalOcean token", ["dop_v1_", "doo_v1_", "dor_v1_"], "hex", 64),
  ...each("Cloudflare token", ["cfat_", "cfut_"], "alnum", 40),
  of("Cloudflare origin key", "v1.0-", "base64url", 171),
  of("Heroku key", "HRKU-AA", "base64url", 58),
  of("Fly.io token", "fo1_", "base64url", 43),
  ...each("Fly.io token", ["fm1r_", "fm1a_", "fm2_"], "base64", 100),
  of("Supabase token", "sbp_", "hex", 40),
  of("Supabase secret key", "sb_secret_", "base64url", 30),
  of("Vercel token", "vcp_", "alnum", 24),
  of("Vercel Blob token", "vercel_blob_rw_", "base64url", 40),
  of("Netlify token", "nfp_", "alnum", 36),
  of("Render key", "rnd_", "alnum", 28),
  ...each("PlanetScale secret", ["pscale_tkn_", "pscale_oauth_", "pscale_pw_"], "dotted", 32),
  of("Neon key", "napi_", "lower", 60),
  of("Databricks token", "dapi", "hex", 32),
  of("Vault service token", "hvs.", "base64url", 90),
  of("Vault batch token", "hvb.", "base64url", 138),
  of("1Password service token", "ops_eyJ", "base64", 250),
  of("age secret key", "AGE-SECRET-KEY-1", "upper", 58),
  of("Tailscale key", "tskey-", "base64url", 24),
  of("Mapbox secret token", "sk.eyJ", "dotted", 60),
  of("OpenShift token", "sha256~", "base64url", 43),
  of("Scalingo token", "tk-us-", "base64url", 48),
  of("Unkey root key", "unkey_", "alnum", 22),
  of("Zuplo key", "zpka_", "base64url", 40),
  of("Defined Networking token", "dnkey-", "base64url", 79),

  // Monitoring.
  of("Grafana service account token", "glsa_", "base64url", 41),
  of("Grafana Cloud token", "glc_", "base64", 32),
  of("Grafana key", "eyJrIjoi", "base64", 70),
  of("Dynatrace token", "dt0c01.", "dotted", 89),
  of("New Relic user key", "NRAK-", "upper", 27),
  of("New Relic browser key", "NRJS-", "hex", 19),
  ...each("Axiom token", ["xaat-", "xapt-"], "base64url", 36),
  of("Sentry user token", "sntryu_", "hex", 64),
  of("Sentry organization token", "sntrys_", "base64url", 60),
  of("Honeycomb key", "hcaik_", "alnum", 58),
  of("PostHog personal key", "phx_", "alnum", 43),

  // Payments.
  ...each("Stripe key", ["sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_"], "alnum", 16),
  of("Square token", "EAAA", "base64url", 56),
  of("Square OAuth secret", "sq0csp-", "base64url", 43),
  of("Square access token", "sq0atp-", "base64url", 22),
  of("Plaid access token", "access-production-", "base64url", 36),
  of("Plaid access token", "access-sandbox-", "base64url", 36),
  of("Flutterwave key", "FLWSECK_TEST-", "base64url", 32),
  of("Flutterwave live key", "FLWSECK-", "base64url", 32),
  of("Shippo token", "shippo_live_", "hex", 40),
  of("Shippo test token", "shippo_test_", "hex", 40),
  ...each("Lob key", ["live_", "test_"], "hex", 35),
  ...each("EasyPost key", ["EZAK", "EZTK"], "alnum", 54),
  ...each("Duffel token", ["duffel_live_", "duffel_test_"], "base64url", 43),
  ...each("Shopify token", ["shpat_", "shpca_", "shppa_", "shpss_"], "hex", 32),
  ...each("Paddle API key", ["pdl_live_apikey_", "pdl_sdbx_apikey_"], "base64url", 45),
  ...each("Polar token", ["polar_pat_", "polar_oat_"], "base64url", 32),
  of("Razorpay key", "rzp_live_", "alnum", 14),
  of("Braintree token", "access_token$production$", "base64url", 48),

  // Mail and chat.
  { ...of("SendGrid key", "SG.", "base64url", 22), second: { sign: ".", alphabet: "base64url", min: 43 } },
  of("Mailgun key", "key-", "hex", 32),
  of("Mailchimp transactional key", "md-", "base64url", 22),
  of("Brevo key", "xkeysib-", "base64url", 81),
  of("Brevo SMTP key", "xsmtpsib-", "base64url", 81),
  of("Resend key", "re_", "base64url", 32),
  of("MailerSend token", "mlsn.", "hex", 64),
  of("Twilio API key", "SK", "hex", 32),
  ...each(
    "Slack token",
    ["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxe-", "xoxe.xoxb-", "xoxe.xoxp-"],
    "base64url",
    18,
  ),
  of("Slack app token", "xapp-", "base64url", 30),
  of("Facebook page token", "EAAM", "alnum", 100),
  of("Facebook user token", "EAAC", "alnum", 100),
  of("HubSpot token", "pat-na1-", "base64url", 36),
  of("HubSpot token in Europe", "pat-eu1-", "base64url", 36),
  of("Frame.io token", "fio-u-", "base64url", 64),
  of("Contentful token", "CFPAT-", "base64url", 43),
  of("Adobe secret", "p8e-", "lower", 32),
  of("Settlemint token", "sm_pat_", "alnum", 16),

  // URLs that work as credentials: the host is shown, the rest is the secret.
  ...places(
    "Slack webhook",
    [
      "hooks.slack.com/services/",
      "hooks.slack.com/workflows/",
      "hooks.slack.com/triggers/",
      "hooks.slack-gov.com/services/",
    ],
    20,
  ),
  ...places("Discord webhook", ["discord.com/api/webhooks/", "discordapp.com/api/webhooks/"], 40),
  ...places("Discord webhook", ["discord.com/api/v9/webhooks/", "discord.com/api/v10/webhooks/"], 40),
  ...places("Telegram bot", ["api.telegram.org/bot", "api.telegram.org/file/bot"], 35),
  ...places("Teams webhook", ["webhook.office.com/webhookb2/", "outlook.office.com/webhook/"], 60),
  ...places("Google Apps Script", ["script.google.com/macros/s/"], 40),
  ...places("Zapier hook", ["hooks.zapier.com/hooks/catch/"], 10),
  ...places("Make hook", ["hook.eu1.make.com/", "hook.eu2.make.com/", "hook.us1.make.com/", "hook.us2.make.com/"], 20),
  ...places("PagerDuty integration", ["events.pagerduty.com/integration/"], 32),
  ...places("Healthchecks ping", ["hc-ping.com/"], 20),
  ...places("n8n webhook", ["app.n8n.cloud/webhook/", "app.n8n.cloud/webhook-test/"], 30),
  ...places("IFTTT webhook", ["maker.ifttt.com/trigger/", "maker.ifttt.com/use/"], 22),
  ...places("Feishu bot", ["open.feishu.cn/open-apis/bot/v2/hook/", "open.larksuite.com/open-apis/bot/v2/hook/"], 30),
  ...places("Chime webhook", ["hooks.chime.aws/incomingwebhooks/"], 30),
  ...places("Loggly input", ["logs-01.loggly.com/inputs/"], 30),
  ...places("Webhook.site", ["webhook.site/"], 30),
];
