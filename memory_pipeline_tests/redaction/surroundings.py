"""Secrets that are known by what stands around them only, each with the text that it is planted in.

As in `canaries`, which adds them to its own, all values are made up here from pieces.
"""

from __future__ import annotations

import base64
import hashlib
import json
import string

HEX = "0123456789abcdef"


def made(seed: str, length: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    """A value that is the same in every run, with letters and digits in it."""
    digest = hashlib.shake_256(f"surroundings {seed}".encode()).digest(length)
    value = "".join(alphabet[byte % len(alphabet)] for byte in digest)
    return value if set(alphabet) <= set(HEX) else f"{value[: length - 3]}k4z"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


_KEY = "\n".join(
    base64.b64encode(hashlib.shake_256(b"another").digest(900)).decode()[n : n + 64] for n in range(0, 1200, 64)
)
_PEM = "-----BEGIN PRIVATE " + f"KEY-----\n{_KEY}\n-----END PRIVATE " + "KEY-----\n"
_ACCOUNT = {"type": "service_account", "project_id": "shop", "private_key": _PEM, "client_email": "shop@ada.dev"}
_ENV = f"LANG=C\nDB_PASSWORD={made('env', 14)}\nAPI_TOKEN={made('token', 30)}\nDEBUG=0\n"
_CONFIG = json.dumps({"host": "db.ada.dev", "user": "ada", "password": made("config", 12)})
_PART = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
_CLAIMS = base64.urlsafe_b64encode(b'{"sub":"1234567890","name":"Ada","admin":true}').decode().rstrip("=")
_NAMED = "\x1b[36mDB_PASSWORD\x1b[0m"


def wrapped(text: str, width: int = 76) -> str:
    return "\n".join(text[start : start + width] for start in range(0, len(text), width))


# The kind, the text before the secret, the secret, the text after it.
FOUND_BY_SURROUNDINGS: tuple[tuple[str, str, str, str], ...] = (
    # base64 that holds a secret
    ("kubeconfig", "users:\n- user:\n    client-key-data: ", b64(_PEM), "\n"),
    ("account-base64", "echo ", b64(json.dumps(_ACCOUNT)), " | base64 -d > account.json"),
    ("account-base64-indented", "GCP_ACCOUNT=", b64(json.dumps(_ACCOUNT, indent=2)), "\n"),
    ("account-base64-odd-order", "x: ", b64(json.dumps(dict(reversed(_ACCOUNT.items())))), "\n"),
    ("key-base64-wrapped", "$ base64 key.pem\n", wrapped(b64(_PEM)), "\n$ "),
    ("env-base64", "run: echo ", b64(_ENV), " | base64 --decode > .env"),
    ("config-base64", "config.json: ", b64(_CONFIG), "\n"),
    ("config-base64-url", "?state=", base64.urlsafe_b64encode(_CONFIG.encode()).decode().rstrip("="), "&x=1"),
    # tokens in pieces
    ("jwt-broken", f"token: {_PART}.{_CLAIMS[:30]}\n", f"{_CLAIMS[30:]}.{made('signature', 43)}", "\n"),
    ("jwt-broken-at-dot", f"{_PART}.{_CLAIMS}.\n  ", made("jwt", 43), "\n"),
    # cookies
    ("curl-b", "curl -b 'theme=dark; auth=", made("b", 30), "' https://ada.dev"),
    ("curl-cookie-option", 'curl -s --cookie "sid=', made("cookie", 30), '" https://ada.dev'),
    ("phpsessid", "PHPSESSID=", made("php", 26, string.ascii_lowercase + string.digits), "; path=/"),
    ("cookie-jar", ".ada.dev\tTRUE\t/\tTRUE\t1799999999\tremember_web\t", made("jar", 40), "\n"),
    ("cookie-jar-http-only", "#HttpOnly_ada.dev\tFALSE\t/\tFALSE\t0\tsid\t", made("jar2", 32), "\n"),
    ("document-cookie", 'document.cookie = "sid=', made("document", 32), '; path=/"'),
    ("requests-cookies", "requests.get(url, cookies={'session': '", made("requests", 32), "'})"),
    # files of settings
    ("wp-config", "define( 'DB_PASSWORD', '", "s3cret wp " + made("wp", 5), "' );"),
    ("wp-salt", "define('NONCE_SALT', '", "x}K " + made("salt", 30) + " |z~", "');"),
    ("xml-add", '<add key="DbPassword" value="', made("xml", 10), '" />'),
    ("xml-property", '<property name="db.password" value="', made("xml2", 10), '"/>'),
    ("xml-entry", '<entry key="mail.password">', made("xml3", 10), "</entry>"),
    ("xml-attribute", '<user name="tomcat" password="', made("xml4", 10), '" roles="admin"/>'),
    ("xml-connection", '<add connectionString="Server=db;User Id=sa;Password=', made("xml5", 12), ';" />'),
    ("yaml-folded", "password: >-\n  ", "f0lded-" + made("fold", 6), "\nuser: ada"),
    ("yaml-literal", "db:\n  db_password: |\n    ", made("literal", 14), "\n  user: ada"),
    ("yaml-next-line", "secret_key:\n    ", made("next", 30), "\n"),
    ("ini-spaces", "[client]\nuser = ada\npassword = ", made("ini", 12), "\n"),
    ("properties", "spring.mail.password=", made("spring", 12), "\n"),
    ("coloured", f"{_NAMED}=\x1b[32m", made("coloured", 12), "\x1b[0m\n"),
    ("coloured-yaml", "\x1b[34mpassword\x1b[39m: \x1b[33m", made("coloured2", 12), "\x1b[39m\n"),
    ("coloured-within", "API_TOKEN=\x1b[1m", made("coloured3", 24), "\x1b[0m"),
    ("url-encoded", "body: user%3Dada%26password%3D", made("encoded", 12), "%26x%3D1"),
    ("html-escaped", "&quot;password&quot;: &quot;", made("html", 12), "&quot;"),
    ("escaped-twice", '"{\\\\\\"password\\\\\\": \\\\\\"', made("twice", 12), '\\\\\\"}"'),
    # AWS
    (
        "aws-configure",
        "AWS Access Key ID [None]: \nAWS Secret Access Key [None]: ",
        made("aws", 40),
        "\nDefault region",
    ),
    ("aws-configure-again", "AWS Secret Access Key [****************ABCD]: ", made("aws2", 40), "\n"),
    ("aws-csv", "Access key ID,Secret access key\nABCDEFGH,", made("aws3", 40), "\n"),
    (
        "aws-csv-user",
        "User name,Password,Access key ID,Secret access key,Console login link\nada,,ABCDEF,",
        made("aws4", 40),
        ",https://1.signin.aws.amazon.com/console\n",
    ),
    (
        "aws-csv-password",
        "User name,Password,Console login URL\nada,",
        made("aws5", 10) + "!x|",
        ",https://1.signin.aws.amazon.com/console\n",
    ),
    ("csv-quoted", '"email","password"\n"ada@ada.dev","', made("csv", 11), '"\n'),
    ("csv-second-row", "name;password;role\nada;changeme;admin\nbob;", made("csv2", 11), ";user\n"),
    ("table", "| user | password |\n|------|------|\n| ada | ", made("table", 11), " |\n"),
    ("psql-table", " id | email | api_token\n----+-----+-----\n  1 | a@b.c | ", made("psql", 30), "\n(1 row)"),
    ("psql-expanded", "-[ RECORD 1 ]---\nid        | 1\napi_token | ", made("expanded", 30), "\n"),
    # headers and commands
    ("authorization-key", "Authorization: key=", made("fcm", 50), "\n"),
    ("authorization-token", "-H 'Authorization: Token ", made("drf", 40, HEX), "'"),
    ("auth-token-header", "X-Auth-Token: ", made("header", 32), "\n"),
    ("docker-login", "echo ", made("docker", 16), " | docker login -u ada --password-stdin"),
    (
        "docker-login-quoted",
        'echo "',
        "two words " + made("docker2", 6),
        '" | docker login -u ada --password-stdin r.io',
    ),
    ("docker-login-printf", "printf '%s' '", made("docker3", 16), "' | podman login -u ada --password-stdin"),
    ("docker-login-here", 'docker login -u ada --password-stdin <<< "', made("docker4", 16), '"'),
    ("docker-login-p", "docker login -u ada -p ", made("docker5", 12), " r.io"),
    ("sudo", "echo '", made("sudo", 8), "' | sudo -S apt update"),
    ("chpasswd", "echo 'ada:", made("chpasswd", 9), "' | sudo chpasswd"),
    ("sshpass", "sshpass -p ", made("sshpass", 8), " ssh ada@ada.dev"),
    ("sshpass-quoted", "sshpass -p '", "two words " + made("sshpass2", 4), "' ssh ada@ada.dev"),
    ("sshpass-tight", "sshpass -p", made("sshpass3", 8), " scp x ada@ada.dev:"),
    ("mysql-tight", "mysql -h db -u root -p", made("mysql", 9), " shop < dump.sql"),
    ("mysql-long", "mysql --user=root --password=", made("mysql2", 9), " shop"),
    ("libpq", 'psql "host=db user=ada password=', made("libpq", 9), ' dbname=shop"'),
    ("mongosh", "mongosh -u root -p ", made("mongo", 9), " --authenticationDatabase admin"),
    ("ldap", "ldapsearch -x -D cn=admin,dc=ada -w ", made("ldap", 9), " -b dc=ada"),
    ("smb", "smbclient //nas/share -U ada%", made("smb", 9), " -c ls"),
    ("unzip", "unzip -P ", made("unzip", 9), " backup.zip"),
    ("seven-zip", "7z x -p", made("7z", 9), " backup.7z"),
    ("keytool", "keytool -list -storepass ", made("keytool", 9), " -keystore k.jks"),
    ("httpie", "http -a ada:", made("httpie", 9), " https://ada.dev"),
    ("htpasswd-command", "htpasswd -b .htpasswd ada ", made("htpasswd", 9), "\n"),
    ("htpasswd-file", "ada:", "$apr1$" + made("salt1", 8) + "$" + made("hash1", 22), "\n"),
    ("bcrypt", "| 1 | ada | ", "$2y$10$" + made("hash2", 53), " |"),
    ("shadow", "ada:", "$6$" + made("salt3", 12) + "$" + made("hash3", 86), ":19000:0:99999:7:::"),
    ("wpa", 'network={\n  ssid="home"\n  psk="', "sunny blue " + made("wpa", 4), '"\n}'),
    ("wpa-plain", "wpa_supplicant: psk=", made("wpa2", 64, HEX), "\n"),
    ("nmcli", 'nmcli device wifi connect home password "', made("nmcli", 10), '"'),
    ("netrc-lines", "machine ada.dev\n  login ada\n  password ", made("netrc", 10), "\n"),
    ("pgpass-host", "db.ada.dev:5439:shop:ada:", made("pgpass", 9), "\n"),
    ("odbc", "Driver={PostgreSQL};Server=db;Uid=ada;Pwd=", made("odbc", 9), ";"),
    ("shared-access-key", "Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey=", made("bus", 42) + "=", "\n"),
    # said
    ("en-own", "my gpg passphrase is ", "correct horse battery staple", ""),
    ("en-our", "our wifi password is ", "sunny blue sky", ", tell nobody"),
    ("en-user-and", "log in with user ada and password ", "Tr0ub4" + "dor", " please"),
    ("en-with", "sign in as ada with the password ", "W1nter" + "Sun", " and look"),
    ("en-the", "the password is ", "hunt" + "er2", "."),
    ("en-quoted", 'the sudo password is "', "let me in", '"'),
    ("en-for", "the password for staging is ", "W1nter-" + "Sun", ""),
    ("en-set", "I set the password to ", "W1nter" + "Moon", " yesterday"),
    ("en-now", "The admin password is now ", "Aut7mn" + "Leaf", ""),
    ("en-colon-words", "wifi password: ", "Blue-Sky-9" + " over town", "\n"),
    ("en-passphrase-words", "the ssh passphrase is ", "marble otter lamp violin", ""),
    ("en-reversed", "use ", "W1nter" + "Star", " as the password"),
    ("en-reversed-is", '"', "open the old gate", '" is the password'),
    ("en-slash", "credentials: ada / ", "W1nter" + "Rain", ""),
    ("en-pw", "user: ada, pw: ", "W1nter" + "Snow", ""),
    ("en-pin", "the PIN is ", made("pin", 6, "0123456789"), "."),
    ("de-for", "das Passwort für die Datenbank ist ", "Sommer" + "2026", "!"),
    ("de-quoted", "Das Kennwort lautet „", "blaue Kuh im Wald", "“."),
    ("de-own", "mein Passwort ist ", "gelbes Haus", ""),
    ("de-and", "Benutzer ada und Passwort ", "Winter" + "2031x", ""),
    ("de-compound", "das Datenbankpasswort lautet ", "Winter" + "wald7", ""),
    ("de-reversed", "nimm „", "drei alte Eulen", "“ als Passwort"),
    ("fr-is", "le mot de passe est ", "soleil" + "42x", ""),
    ("fr-quoted", "le mot de passe : « ", "soleil bleu", " »"),
    ("fr-own", "mon mot de passe est ", "petit chat gris", ""),
    ("fr-of", "le mot de passe de la base est ", "Hiver" + "-2031", ""),
    ("es-quoted", "la contraseña es '", "luna llena azul", "'"),
    ("es-own", "mi contraseña es ", "luna-" + "llena9", ""),
    ("es-of", "la contraseña de la base de datos es ", "Invierno" + "7x", ""),
    ("es-key", "la clave del servidor es ", "Gato" + "-negro4", ""),
    ("it-is", "la password è ", "Inverno" + "88", ""),
    ("it-of", "la password del database è ", "Inverno" + "-99", ""),
    ("it-own", "la mia password è ", "gatto nero lento", ""),
    ("it-phrase", "la parola d'ordine è «", "sole e luna", "»"),
    ("pt-is", "a senha é ", "verao" + "2026x", ""),
    ("pt-of", "a senha do banco de dados é ", "Inverno" + "2x", ""),
    ("pt-own", "minha senha é ", "gato preto lento", ""),
    ("pt-word", "a palavra-passe é ", "Outono" + "77", ""),
    ("zh-colon", "密码：", "hunter" + "2x", ""),
    ("zh-is", "数据库密码是 ", "Xk29" + "dkq", "，别忘了"),
    ("zh-tight", "数据库密码是", "Xk29" + "dkw", "。"),
    ("zh-for", "密码为：", "Xk29" + "dke", "\n"),
    ("zh-words", "密码是「", "天青色等烟雨", "」"),
    ("ja-is", "パスワードは ", "abc123" + "xy", " です"),
    ("ja-words", "パスワードは「", "青い空と海", "」です"),
    ("ja-of", "データベースのパスワードは", "Xk29" + "dkr", "です。"),
    ("ko-is", "비밀번호는 ", "Xk29" + "dkt", "입니다"),
    ("ru-is", "пароль: ", "Xk29" + "dky", ""),
    ("ru-quoted", "пароль от базы — «", "синий кит", "»"),
    ("nl-is", "het wachtwoord is ", "Winter" + "55x", ""),
    ("pl-is", "hasło to ", "Zima" + "2031", ""),
    ("sv-is", "lösenordet är ", "Vinter" + "2031", ""),
    ("tr-is", "parola: ", "Kis" + "2031x", ""),
)


def _later(seed: str, length: int = 12) -> str:
    return made(f"later {seed}", length)


# Written when the detectors were done, to see what they miss of what nobody had in view.
SEEN_LATER: tuple[tuple[str, str, str, str], ...] = (
    ("tf-output", 'db_password = "', _later("1"), '"\n'),
    ("tfvars-object", 'variable "db" {\n  default = {\n    password = "', _later("2"), '"\n  }\n}'),
    (
        "ansible-vault",
        "$ANSIBLE_VAULT;1.1;AES256\n",
        made("later av", 80, HEX) + "\n          " + made("later av2", 80, HEX),
        "\n",
    ),
    ("ansible-inventory", "web1 ansible_host=10.0.0.1 ansible_user=ada ansible_ssh_pass=", _later("3"), "\n"),
    ("ansible-become", "ansible_become_pass: ", _later("4"), "\n"),
    ("npmrc-password", '//registry.ada.dev/:_password="', b64(_later("5")), '"\n'),
    ("pypirc", "[pypi]\nusername = ada\npassword = ", _later("6"), "\n"),
    ("gradle", "RELEASE_STORE_PASSWORD=", _later("7"), "\nRELEASE_KEY_ALIAS=ada"),
    ("gradle-key", "signing.password=", _later("8"), "\n"),
    ("compose-env", "    environment:\n      - MYSQL_ROOT_PASSWORD=", _later("9"), "\n"),
    (
        "gh-actions-log",
        "2026-05-01T12:00:00.1234567Z   env:\n2026-05-01T12:00:00.1234567Z     DEPLOY_TOKEN: ",
        _later("10", 30),
        "\n",
    ),
    ("rails-cred", "secret_key_base: ", made("later 11", 128, HEX), "\n"),
    ("rails-master", "config/master.key: ", made("later 12", 32, HEX), "\n"),
    ("django-secret", "SECRET_KEY = 'django-insecure-", "%j@3k*l" + _later("13", 40) + "(x", "'\n"),
    ("django-db", "'default': {'USER': 'ada', 'PASSWORD': '", _later("14"), "', 'HOST': 'db'}"),
    (
        "k8s-secret",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  username: YWRh\n  pw: ",
        b64(_later("15")),
        "\n",
    ),
    ("k8s-string", "apiVersion: v1\nkind: Secret\nstringData:\n  smtp: ", _later("16"), "\n"),
    ("vault-kv", "====== Data ======\nKey         Value\n---         -----\npassword    ", _later("17"), "\n"),
    ("vault-unseal", "Unseal Key 1: ", b64(_later("18", 33)), "\n"),
    ("1password", "  username:  ada\n  password:  ", _later("19"), "\n  url: https://x"),
    ("psql-password", "postgres=# ALTER USER ada WITH PASSWORD '", _later("20"), "';"),
    ("mysql-identified", "CREATE USER 'ada'@'%' IDENTIFIED BY '", _later("21"), "';"),
    ("ssh-keygen", "Enter passphrase (empty for no passphrase): ", _later("22"), "\nEnter same passphrase again: "),
    ("ssh-keygen-N", 'ssh-keygen -t ed25519 -N "', "open the gate 7", '" -f id'),
    ("gpg", "gpg --batch --passphrase ", _later("23"), " -d x.gpg"),
    ("openssl-passin", "openssl rsa -in k.pem -passin pass:", _later("24"), " -out x"),
    ("jdbc", "jdbc:oracle:thin:scott/", _later("25"), "@db:1521/orcl"),
    ("jdbc-sqlserver", "jdbc:sqlserver://db:1433;databaseName=x;user=sa;password=", _later("26"), ";encrypt=true"),
    ("spring-yml", 'spring:\n  datasource:\n    username: ada\n    password: "', _later("27"), '"\n'),
    ("php-env", 'MAIL_PASSWORD="', "two words " + _later("28", 5), '"\n'),
    ("net-user", "net user ada ", _later("29") + "!", " /add"),
    ("powershell", '$pw = ConvertTo-SecureString "', _later("30"), '" -AsPlainText -Force'),
    ("az-keyvault", 'az keyvault secret set --vault-name v --name db --value "', _later("31"), '"'),
    ("gh-secret", 'gh secret set DB_PW --body "', _later("32"), '"'),
    ("heroku-config", "heroku config:set SECRET_TOKEN=", _later("33", 30), " -a shop"),
    (
        "otpauth",
        "otpauth://totp/Shop:ada?secret=",
        made("later 34", 32, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
        "&issuer=Shop",
    ),
    ("recovery-codes", "Your recovery codes:\n", made("later 35", 5, HEX) + "-" + made("later 36", 5, HEX), "\n"),
    (
        "mnemonic",
        "seed phrase: ",
        "abandon ability able about above absent absorb abstract absurd abuse access accident",
        "\n",
    ),
    (
        "mnemonic-is",
        "My wallet recovery phrase is ",
        "zoo zone youth young yellow year wrong write wrist wreck worry world",
        "",
    ),
    ("wifi-qr", "WIFI:T:WPA;S:home;P:", _later("37"), ";;"),
    ("ftp", "lftp -u ada,", _later("38"), " ftp.ada.dev"),
    ("rsync-env", "RSYNC_PASSWORD=", _later("39"), " rsync -av x y"),
    ("winscp", "open sftp://ada:", _later("40"), "@host/ -hostkey=x"),
    ("git-credential", "protocol=https\nhost=github.com\nusername=ada\npassword=", _later("41"), "\n"),
    ("sql-insert", "INSERT INTO users (name, password) VALUES ('ada', '", _later("43"), "');"),
    ("en-hint", "btw the db creds are admin and ", "Qw3" + "rty!x9", " if you need them"),
    ("en-was", "root password used to be ", "Summer" + "1999x", " back then"),
    ("de-pw", "PW für den Server: ", "Regen" + "tag77!", ""),
    ("it-cred", "le credenziali sono: ada / ", "Neve" + "-2041", ""),
    ("zh-login", "登录账号 ada 密码 ", "Xq19" + "zzk!", "\n"),
    ("x-api", 'fetch(url, {headers: {"x-api-key": "', _later("44", 32), '"}})'),
    ("grpc-meta", "metadata: authorization=", _later("45", 40), "\n"),
)
